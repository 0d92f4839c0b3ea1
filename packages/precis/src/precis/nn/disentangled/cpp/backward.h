// The backward pass: dS strip by strip, and gradients of all inputs.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>

#include "forward.h"

namespace precis {
namespace {

struct Gradients {
  Tensor q, k, v, c2p_table, p2c_table;  // tables: (pairs r wide), summed over documents at the end
};

float* for_pair(const Tensor& all, int64_t pair) { return all.data_ptr<float>() + pair * all.stride(0); }

// Adds each number to the entry of `to` at its place; consecutive places fall by at most one.
inline void add_at(const Lanes& given, const int32_t* place, float* to) {
  const int32_t highest = place[0], lowest = place[kLanes - 1];
  float* start = to + lowest;
  if (highest - lowest == kLanes - 1) {
    store(start, load<Lanes>(start) + reversed(given));
    return;
  }
#if defined(__AVX512F__)
  const __m512i places = _mm512_loadu_si512(place);
  __m512 sum = (__m512)given;  // sums each run of equal places into its first lane, by doubling
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    const __mmask16 same = _mm512_mask_cmpeq_epi32_mask(0xffff >> step, places, _mm512_loadu_si512(place + step));
    if (!same) break;
    const __m512i picks = _mm512_add_epi32((__m512i)kUpwards, _mm512_set1_epi32(step));
    sum = _mm512_mask_add_ps(sum, same, sum, _mm512_permutexvar_ps(picks, sum));
  }
  const __mmask16 firsts = _mm512_cmpneq_epi32_mask(places, _mm512_loadu_si512(place - 1)) | 1;
  const __m512i backwards = _mm512_sub_epi32(_mm512_set1_epi32(highest - lowest), (__m512i)kUpwards);
  const __mmask16 there = 0xffff >> (kLanes - 1 - (highest - lowest));
  const __m512 each = _mm512_maskz_permutexvar_ps(there, backwards, _mm512_maskz_compress_ps(firsts, sum));
  _mm512_storeu_ps(start, _mm512_add_ps(_mm512_loadu_ps(start), each));
#else
  float numbers[kLanes];
  store(numbers, given);
  for (int64_t c = 0; c < kLanes; ++c) to[place[c]] += numbers[c];
#endif
}

// From dS to products with the table: the reverse of `Tile::scores`.
struct Scatter {
  const Tile& tile;
  float *by_query, *by_key;

  void strip(int64_t key, const float* ds) const {
    const Problem& p = tile.head.p;
    if (tile.head.is_far(tile.start, tile.rows, key))
      far(key, ds);
    else if (p.gradual)
      near(key, ds);
    else
      one_by_one(0, key, ds);
  }

  void far(int64_t key, const float* ds) const {
    const Problem& p = tile.head.p;
    const int32_t row = tile.head.places(tile.start, key)[0];
    Lanes low{}, high{};
    for (int64_t i = 0; i < tile.rows; ++i) {
      const Lanes one = load<Lanes>(ds + i * kPanel), other = load<Lanes>(ds + i * kPanel + kLanes);
      low += one;
      high += other;
      if (p.has_c2p()) by_query[i * p.skewed() + row] += sum_of(one + other);
    }
    float column[kPanel];
    store(column, low);
    store(column + kLanes, high);
    for (int64_t c = 0; p.has_p2c() && c < kPanel; ++c) by_key[(key + c) * p.skewed() + row] += column[c];
  }

  void near(int64_t key, const float* ds) const {
    const Problem& p = tile.head.p;
    const int64_t stride = p.skewed(), whole = tile.rows / kLanes * kLanes;
    for (int64_t i = 0; i < whole; i += kLanes)
      for (int64_t c = 0; c < kPanel; c += kLanes) {
        Lanes square[kLanes];
        for (int64_t r = 0; r < kLanes; ++r) {
          square[r] = load<Lanes>(ds + (i + r) * kPanel + c);
          const int32_t* place = tile.head.places(tile.start + i + r, key + c);
          if (p.has_c2p()) add_at(square[r], place, by_query + (i + r) * stride);
        }
        if (!p.has_p2c()) continue;
        std::reverse(square, square + kLanes);  // the last query comes first in the list
        transpose(square);
        for (int64_t r = 0; r < kLanes; ++r) {
          const int32_t* place = tile.head.places(tile.start + i + kLanes - 1, key + c + r);
          add_at(square[r], place, by_key + (key + c + r) * stride);
        }
      }
    one_by_one(whole, key, ds);
  }

  void one_by_one(int64_t first, int64_t key, const float* ds) const {
    const Problem& p = tile.head.p;
    const int64_t stride = p.skewed(), count = std::min(kPanel, tile.head.end - key);
    for (int64_t i = first; i < tile.rows; ++i) {
      const int32_t* place = tile.head.places(tile.start + i, key);
      for (int64_t c = 0; p.has_c2p() && c < count; ++c) by_query[i * stride + place[c]] += ds[i * kPanel + c];
      for (int64_t c = 0; p.has_p2c() && c < count; ++c) by_key[(key + c) * stride + place[c]] += ds[i * kPanel + c];
    }
  }
};

// Propagates gradients of products of rows x with some rows of a table: to_x (rows, wide), to_table (r, wide).
void through_table(const Head& head, const float* gradients, Range used, int64_t rows, const float* panels,
                   int64_t room, const Table& table, float* to_x, float* to_table) {
  const Problem& p = head.p;
  const int64_t stride = p.skewed(), wide = p.wide();
  const float *from = gradients + used.start, *table_rows = p.packed(table.rows, p.heads, head.pair);
  for (int64_t e = 0; e < wide; e += kPanel) {
    product<Begin::there>(rows, used.count, {from, stride, 1},
                          table_rows + e * up(p.table, kPanel) + used.start * kPanel, to_x + e, wide);
    product<Begin::there>(used.count, rows, {from, 1, stride}, panels + e * room, to_table + used.start * wide + e,
                          wide);
  }
}

struct Backward {
  const Head& head;
  Matrix given, out, to_queries;
  Sums sums;
  Kept kept;
  float *to_c2p, *to_p2c;

  void tile(int64_t index, const TileRoom& room) const {
    const Problem& p = head.p;
    Tile tile(head, index, room);
    const auto [start, rows] = p.tile(index);
    float agreement[kRows];  // D of FlashAttention's Eq. 4
    agree(tile, agreement);
    p.pack(given.some(start, rows), 0, rows, kRows, p.halves, room.given_rows);
    p.pack(head.q.some(start, rows), 0, rows, kRows, false, room.query_rows);
    if (p.halves) p.pack(head.q.some(start, rows), 0, rows, kRows, true, room.query_pairs);
    std::fill_n(room.mixed, rows * p.wide(), 0.0f);
    if (p.has_c2p()) std::fill_n(room.by_query, rows * p.skewed(), 0.0f);
    if (!kept.data) tile.ask();
    for (int64_t first = 0; first < head.end; first += kBlock) {
      const int64_t count = std::min(kBlock, head.end - first);
      for (int64_t j = 0; j < count; j += kPanel) strip(tile, first + j, agreement, room.more + j * kRows);
      tile.mix(room.more, first, count, p.halves ? head.room.key_pairs : head.room.key_rows, room.mixed);
    }
    for (int64_t at = 0; at < rows * p.wide(); ++at) room.mixed[at] *= p.scale;
    if (p.has_c2p())
      through_table(head, room.by_query, head.rows_for_queries(start, rows), rows, room.query_rows, kRows, p.c2p,
                    room.mixed, to_c2p);
    for (int64_t i = 0; i < rows; ++i) std::copy_n(room.mixed + i * p.wide(), p.width, to_queries.row(start + i));
  }

  void agree(const Tile& tile, float* agreement) const {
    const auto dot = [&](const auto* a, const auto* b) {
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (int64_t e = 0; e < head.p.width; ++e) sum += static_cast<float>(a[e]) * static_cast<float>(b[e]);
      return sum;
    };
    using Half = const at::BFloat16*;
    for (int64_t i = 0; i < tile.rows; ++i) {
      const float *a = given.row(tile.start + i), *b = out.row(tile.start + i);
      agreement[i] = head.p.halves ? dot(reinterpret_cast<Half>(a), reinterpret_cast<Half>(b)) : dot(a, b);
    }
  }

  // The weights of a strip of keys, and from them dS (kRows, kPanel) and the gradients of keys and values.
  void strip(Tile& tile, int64_t key, const float* agreement, float* ds) const {
    const Problem& p = head.p;
    const int64_t rows = tile.rows;
    const float* weights = kept.data ? kept.tile(tile.start) + key * kRows : weigh(tile, key);
    p.multiply<Begin::zero>(rows, p.cells(), {given.row(tile.start), given.stride, 1},
                            head.room.value_columns + key * p.cells(), ds, kPanel);
    const float* met = weights;
    if (p.dropout.active()) {
      tile.drop(key, ds, ds);
      tile.drop(key, weights, tile.room.dropped);
      met = tile.room.dropped;
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < kPanel; ++c) {
        const int64_t at = i * kPanel + c;
        ds[at] = weights[at] * (ds[at] - agreement[i]);
      }
    tile.expect(key, head.room.by_key);
    if (p.halves) {
      to_their_keys(tile, key, pairs_of(met, rows, tile.room.met_pairs), tile.room.given_rows, head.room.to_values);
      to_their_keys(tile, key, pairs_of(ds, rows, tile.room.ds_pairs), tile.room.query_pairs, head.room.to_keys);
    } else {
      to_their_keys(tile, key, met, tile.room.given_rows, head.room.to_values);
      to_their_keys(tile, key, ds, tile.room.query_rows, head.room.to_keys);
    }
    Scatter{tile, tile.room.by_query, head.room.by_key}.strip(key, ds);
  }

  // to (keys, wide) += transposed strip @ rows of the tile, in cells
  void to_their_keys(const Tile& tile, int64_t key, const float* strip, const float* panels, float* to) const {
    const int64_t wide = head.p.wide(), cells = head.p.halves ? (tile.rows + 1) / 2 : tile.rows;
    const int64_t room = head.p.halves ? kRows / 2 : kRows;
    for (int64_t e = 0; e < wide; e += kPanel)
      head.p.multiply<Begin::there>(kPanel, cells, {strip, 1, kPanel}, panels + e * room, to + key * wide + e, wide);
  }

  static const float* pairs_of(const float* strip, int64_t rows, float* to) {
    const float none[kPanel] = {};
    for (int64_t i = 0; i < rows; i += 2)
      pair_rows(strip + i * kPanel, i + 1 < rows ? strip + (i + 1) * kPanel : none, to + i / 2 * kPanel);
    return to;
  }

  const float* weigh(Tile& tile, int64_t key) const {
    float* s = tile.room.scores;
    Lanes unused[kRows];
    std::fill_n(unused, kRows, Lanes{});
    tile.scores(key, s, unused);
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t c = 0; c < kPanel; c += kLanes) {
        float* at = s + i * kPanel + c;
        store(at, exponential(load<Lanes>(at) - sums.highest[tile.start + i]) * sums.share[tile.start + i]);
      }
    return s;
  }

  // Writes the sums of all tiles for keys and values.
  void finish(const Matrix& to_keys, const Matrix& to_values) const {
    const Problem& p = head.p;
    const int64_t wide = p.wide();
    for (int64_t at = 0; at < p.length * wide; ++at) head.room.to_keys[at] *= p.scale;
    for (int64_t index = 0; p.has_p2c() && index < p.tiles(); ++index) {
      const auto [start, count] = p.tile(index);
      through_table(head, head.room.by_key + start * p.skewed(), head.rows_for_keys(start, count), count,
                    head.room.key_rows + start * kPanel, p.padded(), p.p2c, head.room.to_keys + start * wide, to_p2c);
    }
    for (int64_t i = 0; i < p.length; ++i) {
      std::copy_n(head.room.to_keys + i * wide, p.width, to_keys.row(i));
      std::copy_n(head.room.to_values + i * wide, p.width, to_values.row(i));
    }
  }
};

Gradients backward_pass(const Problem& p, const Tensor& given, const Tensor& out, const Tensor& sums,
                        const Tensor& weights) {
  Gradients total{heads_inside(p), heads_inside(p), heads_inside(p), {}, {}};
  if (p.has_c2p()) total.c2p_table = at::zeros({p.pairs(), p.table, p.wide()}, at::kFloat);
  if (p.has_p2c()) total.p2c_table = at::zeros({p.pairs(), p.table, p.wide()}, at::kFloat);
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), p.pairs());
  const auto heads = head_rooms(p, threads, true);
  const auto tiles = tile_rooms(p, threads, std::min(kBlock, p.length), true);
  at::parallel_for(0, p.pairs(), 1, [&](int64_t from, int64_t to) {
    const TileRoom room = tiles.at(at::get_thread_num());
    for (int64_t pair = from; pair < to; ++pair) {
      const Head head(p, pair, heads.at(at::get_thread_num()));
      for (int64_t tile = 0; tile < p.tiles(); ++tile) head.prepare(tile, true);
      const Backward backward{head, p.given(given, pair), p.given(out, pair), p.of(total.q, pair), Sums(sums, pair),
                              Kept(weights, pair), p.has_c2p() ? for_pair(total.c2p_table, pair) : nullptr,
                              p.has_p2c() ? for_pair(total.p2c_table, pair) : nullptr};
      for (int64_t tile = 0; tile < p.tiles(); ++tile) backward.tile(tile, room);
      backward.finish(p.of(total.k, pair), p.of(total.v, pair));
    }
  });
  return total;
}

}  // namespace
}  // namespace precis
