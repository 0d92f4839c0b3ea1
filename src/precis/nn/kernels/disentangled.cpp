// Disentangled attention on the CPU, fp32: softmax(scale * q.k + c2p + p2c) @ v without a tensor of n x n scores.
//
// Tiles of queries meet blocks of keys under a running softmax (FlashAttention, Dao et al. 2022). What is added to a
// score are two numbers out of products with the table, q_i . K_r[d] and k_j . Q_r[d] with d = delta(i, j): the first
// are made for a tile of queries, the second once for all keys of a head. `places` has the table row of every distance
// in descending order, so that pair (i, j) finds its row at n - 1 - i + j, and rows never rise along it.
//
// The backward pass reads the weights where the forward pass kept them, which short inputs can afford, or makes them
// again from each row's highest score and the inverse of its sum. (Their one logarithm would cost digits where scores
// are large.) A head is worked through by one thread, in one order, so that the same numbers come out in every run.

#if !defined(__GNUC__) || defined(__clang__)
#error "only GCC's OpenMP is known to share torch's threads"
#endif

#include <ATen/ATen.h>
#include <ATen/CPUFunctions.h>
#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using at::Tensor;

constexpr int64_t kRows = 128;   // queries of a tile
constexpr int64_t kKeys = 512;   // keys of a block
constexpr int64_t kStrip = 32;   // keys whose products with the table stay in the first-level cache
constexpr int64_t kSkew = 16;    // rows of tiles are longer by this: 2^k bytes apart they would share cache sets
constexpr float kHidden = -1e30f;

struct Matrix {
  float* data;
  int64_t rows, columns, stride;
  Tensor tensor() const { return at::from_blob(data, {rows, columns}, {stride, 1}, at::kFloat); }
  Tensor transposed() const { return at::from_blob(data, {columns, rows}, {1, stride}, at::kFloat); }
  float* row(int64_t index) const { return data + index * stride; }
  Matrix some(int64_t start, int64_t count) const { return {data + start * stride, count, columns, stride}; }
  Matrix across(int64_t start, int64_t count) const { return {data + start, rows, count, stride}; }
};

// out = beta * out + alpha * a @ b
void multiply(const Matrix& out, const Tensor& a, const Tensor& b, float beta, float alpha) {
  Tensor result = out.tensor();
  at::cpu::addmm_out(result, result, a, b, beta, alpha);
}

// e^x with an error of two units in the last place; 0 below -87. Written so that compilers make vectors of it.
inline float exponential(float given) {
  const float x = std::max(given, -87.0f);
  const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const float shifted = x * 1.44269504f + rounder;
  const float whole = shifted - rounder;
  const float rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * rest + 1.3981999507e-3f;
  p = p * rest + 8.3334519073e-3f;
  p = p * rest + 4.1665795894e-2f;
  p = p * rest + 1.6666665459e-1f;
  p = p * rest + 5.0000001201e-1f;
  p = p * rest * rest + rest + 1.0f;
  int32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits << 23) + 0x3f800000;  // 2^whole
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  return given < -87.0f ? 0.0f : p * power;
}

constexpr int64_t kLanes = 8;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef int32_t Picks __attribute__((vector_size(4 * kLanes)));

template <typename Vector, typename Number>
inline Vector load(const Number* from) {
  Vector found;
  std::memcpy(&found, from, sizeof(found));
  return found;
}

// Row r of t becomes column r: squares of s x s change places with those across the diagonal.
inline void transpose(Lanes t[kLanes]) {
  constexpr Picks kept[3] = {{0, 8, 2, 10, 4, 12, 6, 14}, {0, 1, 8, 9, 4, 5, 12, 13}, {0, 1, 2, 3, 8, 9, 10, 11}};
  constexpr Picks taken[3] = {{1, 9, 3, 11, 5, 13, 7, 15}, {2, 3, 10, 11, 6, 7, 14, 15}, {4, 5, 6, 7, 12, 13, 14, 15}};
  const auto swap = [&](int step, int low) {
    const Lanes a = t[low], b = t[low + (1 << step)];
    t[low] = __builtin_shuffle(a, b, kept[step]);
    t[low + (1 << step)] = __builtin_shuffle(a, b, taken[step]);
  };
  for (int low : {0, 2, 4, 6}) swap(0, low);
  for (int low : {0, 1, 4, 5}) swap(1, low);
  for (int low : {0, 1, 2, 3}) swap(2, low);
}

// Which weights dropout takes away: a hash of (seed, head, query, key), the same in both passes.
struct Dropout {
  uint64_t seed;
  uint32_t below;  // of 2^32
  float boost;
  bool active() const { return below != 0; }

  std::pair<uint32_t, uint32_t> row(int64_t head, int64_t query) const {
    uint64_t x = seed + 0x9e3779b97f4a7c15ull * (static_cast<uint64_t>(head) * 0x100000001b3ull + query + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
  }

  float factor(std::pair<uint32_t, uint32_t> row, int64_t key) const {
    uint32_t x = static_cast<uint32_t>(key) + row.first;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = ((x ^ row.second) ^ (x >> 15)) * 0x846ca68bu;
    x ^= x >> 16;
    return x < below ? 0.0f : boost;
  }
};

struct Range {
  int64_t start, count;
};

struct Problem {
  int64_t batch, heads, length, width, table;  // table: rows of it that are used
  Tensor q, k, v, c2p_table, p2c_table;
  const int32_t* places;
  bool gradual;       // rows fall by one at most from one distance to the next, as most buckets do
  const bool* valid;  // (batch, length), or null
  float scale;
  Dropout dropout;

  bool has_c2p() const { return c2p_table.defined(); }
  bool has_p2c() const { return p2c_table.defined(); }
  int64_t pairs() const { return batch * heads; }
  int64_t skewed() const { return table + kSkew; }

  Matrix of(const Tensor& x, int64_t pair) const {  // (b h n e), the last dimension dense
    const auto b = pair / heads, h = pair % heads;
    return {x.data_ptr<float>() + b * x.stride(0) + h * x.stride(1), length, width, x.stride(2)};
  }
  Matrix table_of(const Tensor& x, int64_t pair) const {  // (h r e), the last dimension dense
    return {x.data_ptr<float>() + pair % heads * x.stride(0), table, width, x.stride(1)};
  }
  Matrix block(float* data, int64_t rows, int64_t count) const { return {data, rows, count, count + kSkew}; }
  int64_t tiles() const { return (length + kRows - 1) / kRows; }
  Range tile(int64_t index) const { return {index * kRows, std::min(kRows, length - index * kRows)}; }
};

// A tile's queries as far keys meet them: scale * q + Q_row, so that one product gives scale * q.k + k.Q_row.
struct FarQueries {
  float* data;  // (rows, width)
  int32_t row = -1;  // of the table; -1: none yet
};

// The numbers of one head that its tiles share, and what one thread writes on.
struct Head {
  const Problem& p;
  int64_t pair;
  Matrix q, k, v, c2p_table{}, p2c_table{};
  float* of_key;  // (n, skewed): k_j . Q_r[row], where a tile of keys has the row

  Head(const Problem& p, int64_t pair, float* of_key)
      : p(p), pair(pair), q(p.of(p.q, pair)), k(p.of(p.k, pair)), v(p.of(p.v, pair)), of_key(of_key) {
    if (p.has_c2p()) c2p_table = p.table_of(p.c2p_table, pair);
    if (p.has_p2c()) p2c_table = p.table_of(p.p2c_table, pair);
  }

  void keys_against_table(int64_t tile) const {
    if (!p.has_p2c()) return;
    const auto [start, count] = p.tile(tile);
    const Range used = rows_for_keys(start, count);
    multiply(Matrix{of_key + start * p.skewed(), count, p.table, p.skewed()}.across(used.start, used.count),
             k.some(start, count).tensor(), p2c_table.some(used.start, used.count).transposed(), 0.0f, 1.0f);
  }

  void queries_against_table(int64_t start, int64_t rows, float* of_query) const {
    if (!p.has_c2p()) return;
    const Range used = rows_for_queries(start, rows);
    multiply(Matrix{of_query, rows, p.table, p.skewed()}.across(used.start, used.count), q.some(start, rows).tensor(),
             c2p_table.some(used.start, used.count).transposed(), 0.0f, 1.0f);
  }

  const int32_t* places(int64_t query, int64_t key) const { return p.places + p.length - 1 - query + key; }

  // The table's rows that some queries use with all keys, or some keys with all queries: the list falls.
  Range rows_for_queries(int64_t start, int64_t rows) const {
    const int64_t lowest = places(start, p.length - 1)[0], highest = places(start + rows - 1, 0)[0];
    return {lowest, highest - lowest + 1};
  }
  Range rows_for_keys(int64_t start, int64_t count) const {
    const int64_t lowest = places(0, start + count - 1)[0], highest = places(p.length - 1, start)[0];
    return {lowest, highest - lowest + 1};
  }

  // All pairs of some queries and keys have one row of the table: rows fall along the list, so its ends decide.
  bool is_far(int64_t start, int64_t rows, int64_t key, int64_t count) const {
    return places(start + rows - 1, key)[0] == places(start, key + count - 1)[0];
  }

  bool all_valid(int64_t key, int64_t count) const {
    if (!p.valid) return true;
    const bool* valid = p.valid + (pair / p.heads) * p.length + key;
    return std::all_of(valid, valid + count, [](bool one) { return one; });
  }

  // s (rows, count): scores of a tile of queries and a block of keys, each row less the number in `own`
  void scores(int64_t start, int64_t first, const float* of_query, FarQueries& far, const Matrix& s, float* own) const {
    if (is_far(start, s.rows, first, s.columns) && all_valid(first, s.columns))
      far_scores(start, first, of_query, far, s, own);
    else
      all_scores(start, first, of_query, s, own);
  }

  // The same where all pairs have one row of the table: a shift of each row, and other queries.
  void far_scores(int64_t start, int64_t first, const float* of_query, FarQueries& far, const Matrix& s,
                  float* own) const {
    const int32_t row = places(start, first)[0];
    for (int64_t i = 0; i < s.rows; ++i) own[i] = p.has_c2p() ? of_query[i * p.skewed() + row] : 0.0f;
    const Tensor keys = k.some(first, s.columns).transposed();
    if (!p.has_p2c()) {
      multiply(s, q.some(start, s.rows).tensor(), keys, 0.0f, p.scale);
      return;
    }
    for (int64_t i = 0; far.row != row && i < s.rows; ++i) {
      const float *mine = q.row(start + i), *theirs = p2c_table.row(row);
      for (int64_t e = 0; e < p.width; ++e) far.data[i * p.width + e] = p.scale * mine[e] + theirs[e];
    }
    far.row = row;
    multiply(s, Matrix{far.data, s.rows, p.width, p.width}.tensor(), keys, 0.0f, 1.0f);
  }

  void all_scores(int64_t start, int64_t first, const float* of_query, const Matrix& s, float* own) const {
    const int64_t rows = s.rows, count = s.columns;
    std::fill_n(own, rows, 0.0f);
    multiply(s, q.some(start, rows).tensor(), k.some(first, count).transposed(), 0.0f, p.scale);
    const bool* valid = p.valid ? p.valid + (pair / p.heads) * p.length : nullptr;
    float column[kStrip];
    for (int64_t j = 0; j < count; j += kStrip) {
      const int64_t strip = std::min(kStrip, count - j), key = first + j;
      const bool far = is_far(start, rows, key, strip);
      const int32_t row = places(start, key)[0];
      for (int64_t c = 0; c < strip; ++c) {
        column[c] = valid && !valid[key + c] ? kHidden : 0.0f;
        if (far && p.has_p2c()) column[c] += of_key[(key + c) * p.skewed() + row];
      }
      if (!far) {
        near_scores(start, key, of_query, column, s.across(j, strip));
        continue;
      }
      for (int64_t i = 0; i < rows; ++i) {
        float* out = s.row(i) + j;
        const float added = p.has_c2p() ? of_query[i * p.skewed() + row] : 0.0f;
        for (int64_t c = 0; c < strip; ++c) out[c] += column[c] + added;
      }
    }
  }

  // The same for a strip of keys of which some are near: squares of eight by eight, and what is left over.
  void near_scores(int64_t start, int64_t key, const float* of_query, const float* column, const Matrix& s) const {
    const int64_t rows = p.gradual ? s.rows / kLanes * kLanes : 0, count = s.columns / kLanes * kLanes;
    for (int64_t i = 0; i < rows; i += kLanes) {
      const float* mine = of_query + i * p.skewed();
      for (int64_t c = 0; c < count; c += kLanes) near_square(start + i, key + c, mine, column + c, s.row(i) + c, s.stride);
    }
    for (int64_t i = 0; i < s.rows; ++i) {
      const int64_t done = i < rows ? count : 0;
      near(s.row(i) + done, column + done, of_query + i * p.skewed(), places(start + i, key + done), key + done,
           s.columns - done);
    }
  }

  // Eight numbers with places that fall by one at most lie within eight, so one load and a shuffle find them.
  void near_square(int64_t query, int64_t key, const float* mine, const float* column, float* out,
                   int64_t stride) const {
    Lanes added[kLanes];
    if (p.has_p2c()) {
      for (int64_t c = 0; c < kLanes; ++c) {  // a key's numbers for eight queries, the last first
        const int32_t* place = places(query, key + c);
        const auto theirs = load<Lanes>(of_key + (key + c) * p.skewed() + *place);
        added[c] = __builtin_shuffle(theirs, load<Picks>(place - (kLanes - 1)) - *place);
      }
      transpose(added);
      std::reverse(added, added + kLanes);
    } else {
      std::fill_n(added, kLanes, Lanes{});
    }
    const auto shared = load<Lanes>(column);
    for (int64_t i = 0; i < kLanes; ++i) {
      if (p.has_c2p()) {
        const int32_t* place = places(query + i, key);
        const int32_t lowest = place[kLanes - 1];
        added[i] += __builtin_shuffle(load<Lanes>(mine + i * p.skewed() + lowest), load<Picks>(place) - lowest);
      }
      const Lanes sum = load<Lanes>(out + i * stride) + (shared + added[i]);
      std::memcpy(out + i * stride, &sum, sizeof(sum));
    }
  }

  void near(float* out, const float* column, const float* mine, const int32_t* place, int64_t key,
            int64_t strip) const {
    const int64_t stride = p.skewed();
    const float* theirs = of_key + key * stride;
    if (p.has_c2p() && p.has_p2c()) {
      for (int64_t c = 0; c < strip; ++c) out[c] += column[c] + mine[place[c]] + theirs[c * stride + place[c]];
    } else if (p.has_c2p()) {
      for (int64_t c = 0; c < strip; ++c) out[c] += column[c] + mine[place[c]];
    } else {
      for (int64_t c = 0; c < strip; ++c) out[c] += column[c] + theirs[c * stride + place[c]];
    }
  }
};

// What a thread writes on: products of a head's keys with the table and their gradients (n, skewed), the same of a
// tile's queries, two blocks of scores, the sums of a tile, and its queries as far keys meet them.
struct Room {
  float *of_key, *by_key, *of_query, *by_query, *scores, *more, *sums, *asking;
};

// A room for each thread, in one tensor, so that torch's allocator knows of it.
class Rooms {
 public:
  Rooms(const Problem& p, int64_t tasks, bool with_keys, bool learning) {
    const int64_t keys = with_keys && p.has_p2c() ? p.length * p.skewed() : 0;
    const int64_t queries = p.has_c2p() ? kRows * p.skewed() : 0, block = kRows * (std::min(kKeys, p.length) + kSkew);
    const int64_t counts[] = {keys, learning ? keys : 0, queries, learning ? queries : 0, block, learning ? block : 0,
                              kRows * p.width, p.has_p2c() ? kRows * p.width : 0};
    int64_t place = 0;
    for (int i = 0; i < kParts; ++i) {
      places_[i] = place;
      place += (counts[i] + 15) / 16 * 16;  // rooms begin on cache lines of their own
    }
    slab_ = at::empty({std::min<int64_t>(at::get_num_threads(), tasks), place}, at::kFloat);
  }

  Room here() const {
    float* start = slab_.data_ptr<float>() + at::get_thread_num() * slab_.stride(0);
    const auto at = [&](int i) { return start + places_[i]; };
    return {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  }

 private:
  static constexpr int kParts = 8;
  int64_t places_[kParts];
  Tensor slab_;
};

// One block of scores, less `own` each, becomes weights under the running maximum and sum of a row; what was mixed before
// is scaled.
inline void take_in(float* s, int64_t count, float own, float& highest, float& total, float* mixed, int64_t width) {
  float most = highest - own;
#pragma omp simd reduction(max : most)
  for (int64_t j = 0; j < count; ++j) most = s[j] > most ? s[j] : most;  // GCC makes no vectors of std::max here
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < count; ++j) {
    s[j] = exponential(s[j] - most);
    sum += s[j];
  }
  most += own;
  if (most > highest) {
    const float shrink = exponential(highest - most);
    total *= shrink;
    for (int64_t e = 0; e < width; ++e) mixed[e] *= shrink;
    highest = most;
  }
  total += sum;
}

// What the backward pass needs of each row of a head: weight = e^(score - highest) * share.
struct Sums {
  float *highest, *share;
  Sums(const Tensor& both, int64_t pair)  // (2 pairs n)
      : highest(both.data_ptr<float>() + pair * both.stride(1)), share(highest + both.stride(0)) {}
};

// Weights of a head before dropout, a row for each query, or null; they fit one block of keys.
struct Kept {
  float* data;
  int64_t length;
  Kept(const Tensor& weights, int64_t pair)  // (pairs n n), or empty
      : data(weights.numel() ? weights.data_ptr<float>() + pair * weights.stride(0) : nullptr),
        length(weights.size(-1)) {}
  Matrix rows(int64_t start, int64_t count) const { return {data + start * length, count, length, length}; }
};

void forward_tile(const Head& head, int64_t tile, const Room& room, const Matrix& out, const Sums& sums,
                  const Kept& kept) {
  const Problem& p = head.p;
  const auto [start, rows] = p.tile(tile);
  float highest[kRows], total[kRows], own[kRows];
  FarQueries far{room.asking};
  std::fill_n(highest, rows, -std::numeric_limits<float>::max());
  std::fill_n(total, rows, 0.0f);
  std::fill_n(room.sums, rows * p.width, 0.0f);
  head.queries_against_table(start, rows, room.of_query);
  const Matrix mixed{room.sums, rows, p.width, p.width};
  for (int64_t first = 0; first < p.length; first += kKeys) {
    const int64_t count = std::min(kKeys, p.length - first);
    const Matrix s = p.block(room.scores, rows, count);
    head.scores(start, first, room.of_query, far, s, own);
    for (int64_t i = 0; i < rows; ++i) {
      float* row = s.row(i);
      take_in(row, count, own[i], highest[i], total[i], mixed.row(i), p.width);
      if (kept.data) {
        const float share = 1.0f / total[i];
        float* weight = kept.rows(start, rows).row(i);
        for (int64_t j = 0; j < count; ++j) weight[j] = row[j] * share;
      }
      if (p.dropout.active()) {
        const auto key = p.dropout.row(head.pair, start + i);
        for (int64_t j = 0; j < count; ++j) row[j] *= p.dropout.factor(key, first + j);
      }
    }
    multiply(mixed, s.tensor(), head.v.some(first, count).tensor(), 1.0f, 1.0f);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const float share = sums.share[start + i] = 1.0f / total[i];
    sums.highest[start + i] = highest[i];
    float* to = out.data + (start + i) * out.stride;
    for (int64_t e = 0; e < p.width; ++e) to[e] = mixed.row(i)[e] * share;
  }
}

Tensor heads_inside(const Problem& p) {  // (b h n e) whose heads can be merged without a copy
  const auto row = p.heads * p.width;
  return at::empty_strided({p.batch, p.heads, p.length, p.width}, {p.length * row, p.width, row, 1}, at::kFloat);
}

std::tuple<Tensor, Tensor, Tensor> forward_pass(const Problem& p, bool keep) {
  Tensor out = heads_inside(p), sums = at::empty({2, p.pairs(), p.length}, at::kFloat);
  const Tensor weights = at::empty({keep ? p.pairs() : 0, p.length, p.length}, at::kFloat);
  if (p.pairs() >= std::min<int64_t>(2 * at::get_num_threads(), p.tiles())) {  // a thread for a head at a time
    const Rooms rooms(p, p.pairs(), true, false);
    at::parallel_for(0, p.pairs(), 1, [&](int64_t from, int64_t to) {
      const Room room = rooms.here();
      for (int64_t pair = from; pair < to; ++pair) {
        const Head head(p, pair, room.of_key);
        for (int64_t tile = 0; tile < p.tiles(); ++tile) head.keys_against_table(tile);
        for (int64_t tile = 0; tile < p.tiles(); ++tile)
          forward_tile(head, tile, room, p.of(out, pair), Sums(sums, pair), Kept(weights, pair));
      }
    });
    return {out, sums, weights};
  }
  const Rooms rooms(p, p.tiles(), false, false);
  const Tensor of_key = at::empty({p.has_p2c() ? p.length * p.skewed() : 0}, at::kFloat);
  for (int64_t pair = 0; pair < p.pairs(); ++pair) {  // all threads on one head
    const Head head(p, pair, of_key.data_ptr<float>());
    at::parallel_for(0, p.tiles(), 1, [&](int64_t from, int64_t to) {
      for (int64_t tile = from; tile < to; ++tile) head.keys_against_table(tile);
    });
    at::parallel_for(0, p.tiles(), 1, [&](int64_t from, int64_t to) {
      const Room room = rooms.here();
      for (int64_t tile = from; tile < to; ++tile)
        forward_tile(head, tile, room, p.of(out, pair), Sums(sums, pair), Kept(weights, pair));
    });
  }
  return {out, sums, weights};
}

struct Gradients {
  Tensor q, k, v, c2p_table, p2c_table;  // of the tables: one for each document and head, summed at the end
};

// dS to the products with the table: the way of `scores` backwards.
void scatter(const Head& head, int64_t start, int64_t first, const Matrix& ds, float* by_query, float* by_key) {
  const Problem& p = head.p;
  const int64_t rows = ds.rows, count = ds.columns, stride = p.skewed();
  float column[kStrip];
  for (int64_t j = 0; j < count; j += kStrip) {
    const int64_t strip = std::min(kStrip, count - j), key = first + j;
    const bool far = head.is_far(start, rows, key, strip);
    const int32_t row = head.places(start, key)[0];
    std::fill_n(column, strip, 0.0f);
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = ds.row(i) + j;
      if (far) {
        float sum = 0.0f;
        for (int64_t c = 0; c < strip; ++c) {
          column[c] += from[c];
          sum += from[c];
        }
        if (p.has_c2p()) by_query[i * stride + row] += sum;
        continue;
      }
      const int32_t* place = head.places(start + i, key);
      if (p.has_c2p())
        for (int64_t c = 0; c < strip; ++c) by_query[i * stride + place[c]] += from[c];
      if (p.has_p2c())
        for (int64_t c = 0; c < strip; ++c) by_key[(key + c) * stride + place[c]] += from[c];
    }
    if (far && p.has_p2c())
      for (int64_t c = 0; c < strip; ++c) by_key[(key + c) * stride + row] += column[c];
  }
}

// s, scores of a tile less `own`, becomes its weights before dropout.
void weigh(const Sums& sums, int64_t start, const float* own, const Matrix& s) {
  for (int64_t i = 0; i < s.rows; ++i) {
    const float shift = sums.highest[start + i] - own[i], share = sums.share[start + i];
    float* row = s.row(i);
    for (int64_t j = 0; j < s.columns; ++j) row[j] = exponential(row[j] - shift) * share;
  }
}

// ds, the gradient of the weights as the values met them, becomes that of the scores. Gives the weights as the values
// met them: under dropout they are put into `room`.
Matrix differentiate(const Head& head, int64_t start, int64_t first, const float* agreement, const Matrix& weights,
                     const Matrix& ds, const Matrix& room) {
  const Dropout& dropout = head.p.dropout;
  for (int64_t i = 0; i < ds.rows; ++i) {
    const float* weight = weights.row(i);
    const float agreed = agreement[i];
    float *gradient = ds.row(i), *met = room.row(i);
    if (!dropout.active()) {
      for (int64_t j = 0; j < ds.columns; ++j) gradient[j] = weight[j] * (gradient[j] - agreed);
      continue;
    }
    const auto key = dropout.row(head.pair, start + i);
#pragma omp simd
    for (int64_t j = 0; j < ds.columns; ++j) {  // met may be weight itself
      const float factor = dropout.factor(key, first + j), whole = weight[j];
      met[j] = whole * factor;
      gradient[j] = whole * (gradient[j] * factor - agreed);
    }
  }
  return dropout.active() ? room : weights;
}

struct HeadGradients {
  Matrix q, k, v, c2p_table{}, p2c_table{};
};

// Gradients of products x . table[used] to x and to the table's rows, which are added up.
void through_table(const Matrix& by_row, const Range& used, const Matrix& x, const Matrix& table, const Matrix& to_x,
                   const Matrix& to_table) {
  const Tensor given = by_row.across(used.start, used.count).tensor();
  multiply(to_x, given, table.some(used.start, used.count).tensor(), 1.0f, 1.0f);
  multiply(to_table.some(used.start, used.count), by_row.across(used.start, used.count).transposed(), x.tensor(), 1.0f, 1.0f);
}

void backward_tile(const Head& head, int64_t tile, const Room& room, const Matrix& given, const Matrix& out,
                   const Sums& sums, const Kept& kept, const HeadGradients& total) {
  const Problem& p = head.p;
  const auto [start, rows] = p.tile(tile);
  const Matrix asking = head.q.some(start, rows);
  const Tensor given_here = given.some(start, rows).tensor();
  const Matrix to_queries = total.q.some(start, rows);
  float agreement[kRows], own[kRows];  // the first: D of FlashAttention's Eq. 4
  FarQueries far{room.asking};
  for (int64_t i = 0; i < rows; ++i) {
    const float *a = given.data + (start + i) * given.stride, *b = out.data + (start + i) * out.stride;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t e = 0; e < p.width; ++e) sum += a[e] * b[e];
    agreement[i] = sum;
  }
  if (!kept.data) head.queries_against_table(start, rows, room.of_query);
  if (p.has_c2p()) std::fill_n(room.by_query, rows * p.skewed(), 0.0f);
  for (int64_t first = 0; first < p.length; first += kKeys) {
    const int64_t count = std::min(kKeys, p.length - first);
    const Matrix ds = p.block(room.more, rows, count), s = p.block(room.scores, rows, count);
    const Matrix weights = kept.data ? kept.rows(start, rows) : s;
    if (!kept.data) {
      head.scores(start, first, room.of_query, far, s, own);
      weigh(sums, start, own, s);
    }
    multiply(ds, given_here, head.v.some(first, count).transposed(), 0.0f, 1.0f);
    const Matrix met = differentiate(head, start, first, agreement, weights, ds, s);
    multiply(total.v.some(first, count), met.transposed(), given_here, 1.0f, 1.0f);
    multiply(to_queries, ds.tensor(), head.k.some(first, count).tensor(), first ? 1.0f : 0.0f, p.scale);
    multiply(total.k.some(first, count), ds.transposed(), asking.tensor(), 1.0f, p.scale);
    scatter(head, start, first, ds, room.by_query, room.by_key);
  }
  if (p.has_c2p())
    through_table({room.by_query, rows, p.table, p.skewed()}, head.rows_for_queries(start, rows), asking,
                  head.c2p_table, to_queries, total.c2p_table);
}

Matrix table_gradient(const Tensor& all, int64_t pair) {  // (pairs r e), dense
  return {all.data_ptr<float>() + pair * all.stride(0), all.size(1), all.size(2), all.size(2)};
}

Gradients backward_pass(const Problem& p, const Tensor& given, const Tensor& out, const Tensor& sums,
                        const Tensor& weights) {
  Gradients total{heads_inside(p), heads_inside(p).zero_(), heads_inside(p).zero_(), {}, {}};
  if (p.has_c2p()) total.c2p_table = at::zeros({p.pairs(), p.table, p.width}, at::kFloat);
  if (p.has_p2c()) total.p2c_table = at::zeros({p.pairs(), p.table, p.width}, at::kFloat);
  const Rooms rooms(p, p.pairs(), true, true);
  at::parallel_for(0, p.pairs(), 1, [&](int64_t from, int64_t to) {
    const Room room = rooms.here();
    for (int64_t pair = from; pair < to; ++pair) {
      const Head head(p, pair, room.of_key);
      const Kept kept(weights, pair);
      for (int64_t tile = 0; !kept.data && tile < p.tiles(); ++tile) head.keys_against_table(tile);
      if (p.has_p2c()) std::fill_n(room.by_key, p.length * p.skewed(), 0.0f);
      HeadGradients mine{p.of(total.q, pair), p.of(total.k, pair), p.of(total.v, pair)};
      if (p.has_c2p()) mine.c2p_table = table_gradient(total.c2p_table, pair);
      if (p.has_p2c()) mine.p2c_table = table_gradient(total.p2c_table, pair);
      for (int64_t tile = 0; tile < p.tiles(); ++tile)
        backward_tile(head, tile, room, p.of(given, pair), p.of(out, pair), Sums(sums, pair), kept, mine);
      for (int64_t tile = 0; p.has_p2c() && tile < p.tiles(); ++tile) {
        const auto [start, count] = p.tile(tile);
        through_table({room.by_key + start * p.skewed(), count, p.table, p.skewed()}, head.rows_for_keys(start, count),
                      head.k.some(start, count), head.p2c_table, mine.k.some(start, count), mine.p2c_table);
      }
    }
  });
  return total;
}

Tensor dense_last(const Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

Problem problem(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& c2p_table,
                const std::optional<Tensor>& p2c_table, const Tensor& places, const std::optional<Tensor>& valid,
                double scale, double dropout, int64_t seed) {
  TORCH_CHECK(q.dim() == 4 && q.sizes() == k.sizes() && q.sizes() == v.sizes(), "q, k and v: one shape (b h n e)");
  TORCH_CHECK(c2p_table || p2c_table, "one of the tables is needed");
  TORCH_CHECK(omp_get_max_threads() == at::get_num_threads(), "another OpenMP than torch's is at work");
  const int64_t rows = (c2p_table ? *c2p_table : *p2c_table).size(1);
  std::vector<Tensor> all{q, k, v};
  for (const auto& table : {c2p_table, p2c_table}) {
    if (!table) continue;
    TORCH_CHECK(table->sizes() == at::IntArrayRef({q.size(1), rows, q.size(3)}), "tables: one shape (h r e)");
    all.push_back(*table);
  }
  for (const Tensor& x : all) TORCH_CHECK(x.scalar_type() == at::kFloat && x.is_cpu(), "fp32 on the CPU alone");
  TORCH_CHECK(places.scalar_type() == at::kInt && places.is_contiguous() && places.numel() == 2 * q.size(2) - 1,
              "places: int32 of 2n - 1 distances");
  Problem p;
  p.batch = q.size(0), p.heads = q.size(1), p.length = q.size(2), p.width = q.size(3);
  p.q = dense_last(q), p.k = dense_last(k), p.v = dense_last(v);
  if (c2p_table) p.c2p_table = dense_last(*c2p_table);
  if (p2c_table) p.p2c_table = dense_last(*p2c_table);
  p.table = rows;
  p.places = places.data_ptr<int32_t>();
  if (valid)
    TORCH_CHECK(valid->is_contiguous() && valid->scalar_type() == at::kBool &&
                    valid->sizes() == at::IntArrayRef({q.size(0), q.size(2)}),
                "valid: dense booleans (b n)");
  p.gradual = true;
  for (int64_t i = 1; i < places.numel(); ++i) p.gradual = p.gradual && p.places[i - 1] - p.places[i] <= 1;
  p.valid = valid ? valid->data_ptr<bool>() : nullptr;
  p.scale = static_cast<float>(scale);
  p.dropout = {static_cast<uint64_t>(seed), static_cast<uint32_t>(std::min(dropout * 4294967296.0, 4294967295.0)),
               static_cast<float>(1.0 / (1.0 - dropout))};
  return p;
}

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const std::optional<Tensor>& c2p_table,
                                           const std::optional<Tensor>& p2c_table, const Tensor& places,
                                           const std::optional<Tensor>& valid, double scale, double dropout,
                                           int64_t seed, bool keep) {
  TORCH_CHECK(!keep || q.size(2) <= kKeys, "weights are kept of ", kKeys, " tokens at most");
  return forward_pass(problem(q, k, v, c2p_table, p2c_table, places, valid, scale, dropout, seed), keep);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& c2p_table,
    const std::optional<Tensor>& p2c_table, const Tensor& places, const std::optional<Tensor>& valid, double scale,
    double dropout, int64_t seed, const Tensor& given, const Tensor& out, const Tensor& sums, const Tensor& weights) {
  const Problem p = problem(q, k, v, c2p_table, p2c_table, places, valid, scale, dropout, seed);
  Gradients total = backward_pass(p, dense_last(given), dense_last(out), sums, weights);
  for (Tensor* table : {&total.c2p_table, &total.p2c_table})
    *table = table->defined() ? table->view({p.batch, p.heads, p.table, p.width}).sum(0) : at::empty({0}, at::kFloat);
  return {total.q, total.k, total.v, total.c2p_table, total.p2c_table};
}

}  // namespace

TORCH_LIBRARY(precis_disentangled, m) {
  m.def("forward", &forward);
  m.def("backward", &backward);
}
