// The problem of one call: inputs, tables, the list of places, dropout; and access to its matrices.
#pragma once

#include <ATen/ATen.h>

#include <limits>
#include <utility>
#include <vector>

#include "products.h"

namespace precis {
namespace {

using at::Tensor;

constexpr int64_t kRows = 64;    // queries of a tile
constexpr int64_t kBlock = 256;  // keys between two updates of the running maximum
constexpr int64_t kKept = 512;   // tokens of the longest input whose weights are kept
constexpr int64_t kSkew = 16;    // extra length of tile rows: at a distance of 2^k bytes they would share cache sets
constexpr float kHidden = -1e30f;
constexpr float kLowest = -std::numeric_limits<float>::max();

// The weights that dropout removes: a hash of (seed, head, query, key), the same in both passes.
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
  int64_t end() const { return start + count; }
};

// The rows of a table that a call uses, packed for products once for all documents.
struct Table {
  Tensor given;              // (h r e), the last dimension dense
  Tensor columns, rows;      // (h panels*e*kPanel), (h panels*r*kPanel)
};

struct Problem {
  int64_t batch, heads, length, width, table;  // table: number of its rows in use
  Tensor q, k, v;
  Table c2p, p2c;
  std::vector<int32_t> all_places;  // with kRows more at either end
  const int32_t* places;
  bool halves;              // q, k, v and the tables are bf16 and multiplied directly
  int64_t stride;           // of products with the table, in numbers
  bool gradual;             // rows fall by at most one from one distance to the next, as in most buckets
  const bool* valid;        // (batch, length), or null
  std::vector<int64_t> ends;  // of a document: one past its last valid key
  float scale;
  Dropout dropout;

  bool has_c2p() const { return c2p.given.defined(); }
  bool has_p2c() const { return p2c.given.defined(); }
  int64_t pairs() const { return batch * heads; }
  int64_t skewed() const { return stride; }
  int64_t wide() const { return up(width, kPanel); }
  int64_t padded() const { return up(length, kPanel); }
  int64_t tiles() const { return (length + kRows - 1) / kRows; }
  Range tile(int64_t index) const { return {index * kRows, std::min(kRows, length - index * kRows)}; }

  Matrix of(const Tensor& x, int64_t pair) const {  // (b h n e), the last dimension dense
    const auto b = pair / heads, h = pair % heads;
    return {x.data_ptr<float>() + b * x.stride(0) + h * x.stride(1), length, width, x.stride(2)};
  }
  // The same for inputs: a row has `cells()` numbers of fp32 or pairs of bf16.
  Matrix given(const Tensor& x, int64_t pair) const {
    if (!halves) return of(x, pair);
    const auto start = pair / heads * x.stride(0) + pair % heads * x.stride(1);
    return {reinterpret_cast<float*>(x.data_ptr<at::BFloat16>() + start), length, cells(), x.stride(2) / 2};
  }
  Matrix given(const Table& x, int64_t head) const {
    if (!halves) return {x.given.data_ptr<float>() + head * x.given.stride(0), table, width, x.given.stride(1)};
    return {reinterpret_cast<float*>(x.given.data_ptr<at::BFloat16>() + head * x.given.stride(0)), table, cells(),
            x.given.stride(1) / 2};
  }
  int64_t cells() const { return halves ? width / 2 : width; }

  // Packs rows of an input matrix as fp32 or, with `pairs`, as pairs of bf16 rows.
  void pack(const Matrix& x, int64_t start, int64_t count, int64_t room, bool pairs, float* panels) const {
    const auto* numbers = reinterpret_cast<const at::BFloat16*>(x.data);
    if (pairs)
      pack_row_pairs(numbers, 2 * x.stride, width, start, count, room, panels);
    else if (halves)
      pack_rows(numbers, 2 * x.stride, width, start, count, room, panels);
    else
      pack_rows(x.data, x.stride, width, start, count, room, panels);
  }

  template <Begin kBegin, int kVectors = 2>
  void multiply(int64_t rows, int64_t depth, Left a, const float* panel, float* out, int64_t stride,
                Ends ends = {}) const {
    if (halves)
      product<kBegin, Cell::pair, kVectors>(rows, depth, a, panel, out, stride, ends);
    else
      product<kBegin, Cell::number, kVectors>(rows, depth, a, panel, out, stride, ends);
  }
  static const float* packed(const Tensor& x, int64_t heads, int64_t pair) {
    return x.defined() ? x.data_ptr<float>() + pair % heads * x.stride(0) : nullptr;
  }
};

}  // namespace
}  // namespace precis
