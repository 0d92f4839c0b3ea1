// One head of one document: its packed keys and values, and products with the table.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "rooms.h"

namespace precis {
namespace {

// One head of one document.
struct Head {
  const Problem& p;
  int64_t pair, end;  // end: one past the last valid key
  const bool* valid;
  Matrix q, k, v;
  HeadRoom room;

  Head(const Problem& p, int64_t pair, const HeadRoom& room)
      : p(p), pair(pair), end(p.ends[pair / p.heads]), valid(p.valid ? p.valid + pair / p.heads * p.length : nullptr),
        q(p.given(p.q, pair)), k(p.given(p.k, pair)), v(p.given(p.v, pair)), room(room) {}

  const int32_t* places(int64_t query, int64_t key) const { return p.places + p.length - 1 - query + key; }

  // The table rows of some queries with all keys, or of some keys with all queries: rows fall along the list.
  Range rows_for_queries(int64_t start, int64_t rows) const {
    const int64_t lowest = places(start, end - 1)[0], highest = places(start + rows - 1, 0)[0];
    return {lowest, highest - lowest + 1};
  }
  Range rows_for_keys(int64_t start, int64_t count) const {
    const int64_t lowest = places(0, start + count - 1)[0], highest = places(p.length - 1, start)[0];
    return {lowest, highest - lowest + 1};
  }

  // Packs a tile of keys and values, and multiplies the keys with the table.
  void prepare(int64_t tile, bool learning) const {
    const auto [start, count] = p.tile(tile);
    pack_columns(k, start, count, room.keys);
    p.pack(v, start, count, p.padded(), p.halves, room.values);
    if (learning) {
      p.pack(k, start, count, p.padded(), false, room.key_rows);
      if (p.halves) p.pack(k, start, count, p.padded(), true, room.key_pairs);
      pack_columns(v, start, count, room.value_columns);
      std::fill_n(room.to_keys + start * p.wide(), up(count, kPanel) * p.wide(), 0.0f);
      std::fill_n(room.to_values + start * p.wide(), up(count, kPanel) * p.wide(), 0.0f);
      if (p.has_p2c()) std::fill_n(room.by_key + start * p.skewed(), up(count, kPanel) * p.skewed(), 0.0f);
    }
    if (p.has_p2c())
      against_table(k.some(start, count), p.p2c, room.of_key + start * p.skewed(),
                    [&, start = start](int64_t i, int64_t many) { return rows_for_keys(start + i, many); });
  }

  void queries_against_table(int64_t start, int64_t rows, float* of_query) const {
    if (p.has_c2p())
      against_table(q.some(start, rows), p.c2p, of_query,
                    [&](int64_t i, int64_t many) { return rows_for_queries(start + i, many); });
  }

  // Products of rows of x with the table rows that they use; these move with x, up or down.
  template <typename Used>
  void against_table(const Matrix& x, const Table& table, float* out, const Used& used) const {
    const float* columns = p.packed(table.columns, p.heads, pair);
    const Range whole = used(0, x.rows);
    for (int64_t r = whole.start / kPanel * kPanel; r < whole.start + whole.count; r += kPanel) {
      const Range low = users(x.rows, r, used), high = users(x.rows, r + kLanes, used);
      const int64_t first = std::max(low.start, high.start), last = std::min(low.end(), high.end());
      const auto multiply = [&](int64_t from, int64_t to, int64_t column, auto vectors) {
        if (from < to)
          p.multiply<Begin::zero, decltype(vectors)::value>(to - from, p.cells(), {x.row(from), x.stride, 1},
                                                            columns + r * p.cells() + column,
                                                            out + from * p.skewed() + r + column, p.skewed());
      };
      multiply(first, last, 0, std::integral_constant<int, 2>());
      for (const auto& [half, column] : {std::pair(low, int64_t{0}), std::pair(high, kLanes)}) {
        const std::integral_constant<int, 1> one;
        if (first >= last) {
          multiply(half.start, half.end(), column, one);
          continue;
        }
        multiply(half.start, first, column, one);
        multiply(last, half.end(), column, one);
      }
    }
  }

  // The range of rows, in whole groups, that use some of the table's kLanes rows from `row` on.
  template <typename Used>
  static Range users(int64_t rows, int64_t row, const Used& used) {
    int64_t first = rows, last = 0;
    for (int64_t i = 0; i < rows; i += kGroup) {
      const Range mine = used(i, std::min<int64_t>(kGroup, rows - i));
      if (mine.start >= row + kLanes || mine.end() <= row) continue;
      first = std::min(first, i);
      last = std::min(i + kGroup, rows);
    }
    return {first, std::max<int64_t>(last - first, 0)};
  }

  // True if all pairs of some queries and a strip of keys share one table row (rows fall along the list, so its ends
  // decide), and no key is hidden.
  bool is_far(int64_t start, int64_t rows, int64_t key) const {
    return places(start + rows - 1, key)[0] == places(start, key + kPanel - 1)[0] && all_valid(key);
  }
  bool all_valid(int64_t key) const {
    if (key + kPanel > end) return false;
    return !valid || std::all_of(valid + key, valid + key + kPanel, [](bool one) { return one; });
  }
};

}  // namespace
}  // namespace precis
