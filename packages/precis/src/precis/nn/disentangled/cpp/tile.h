// A tile of queries: its scores strip by strip, and weights times values.
#pragma once

#include <algorithm>
#include <tuple>

#include "head.h"

namespace precis {
namespace {

// A tile of queries while it moves along the keys.
struct Tile {
  const Head& head;
  int64_t start, rows;
  const TileRoom& room;
  int32_t far = -1;  // the table row of room.far; -1: none yet

  Tile(const Head& head, int64_t index, const TileRoom& room) : head(head), room(room) {
    std::tie(start, rows) = std::make_tuple(head.p.tile(index).start, head.p.tile(index).count);
  }

  void ask() {
    const Problem& p = head.p;
    for (int64_t i = 0; i < rows; ++i)
      fill(i, room.asking, [&](float mine, float) { return p.scale * mine; }, head.q.row(start + i));
    head.queries_against_table(start, rows, room.of_query);
  }

  // Row i of `asking`: computed from the query's numbers and equally many others.
  template <typename Make>
  void fill(int64_t i, float* asking, const Make& make, const float* others) const {
    const Problem& p = head.p;
    const auto write = [&](auto* to, const auto* mine, const auto* theirs) {
      for (int64_t e = 0; e < p.width; ++e) to[e] = make(static_cast<float>(mine[e]), static_cast<float>(theirs[e]));
    };
    float *to = asking + i * p.cells(), *mine = head.q.row(start + i);
    using Half = at::BFloat16;
    if (p.halves)
      write(reinterpret_cast<Half*>(to), reinterpret_cast<const Half*>(mine), reinterpret_cast<const Half*>(others));
    else
      write(to, mine, others);
  }

  // s (kRows, kPanel): scores of a strip of keys; `top`: each row's highest so far, per lane
  void scores(int64_t key, float* s, Lanes* top) {
    if (head.is_far(start, rows, key))
      far_scores(key, s, top);
    else
      near_scores(key, s, top);
  }

  // One table row for all pairs: sums start at q.K_r, with queries scale * q + Q_r instead of scale * q.
  void far_scores(int64_t key, float* s, Lanes* top) {
    const Problem& p = head.p;
    const int32_t row = head.places(start, key)[0];
    float first[kRows] = {};
    for (int64_t i = 0; p.has_c2p() && i < rows; ++i) first[i] = room.of_query[i * p.skewed() + row];
    if (p.has_p2c() && far != row) {
      const float* shared = p.given(p.p2c, head.pair % p.heads).row(row);
      const auto meet = [&](float mine, float theirs) { return p.scale * mine + theirs; };
      for (int64_t i = 0; i < rows; ++i) fill(i, room.far, meet, shared);
      far = row;
    }
    p.multiply<Begin::rows>(rows, p.cells(), {p.has_p2c() ? room.far : room.asking, p.cells(), 1},
                            head.room.keys + key * p.cells(), s, kPanel, {first, top});
  }

  // Prefetches the products of a strip of keys with this tile's distances, during other computation.
  void expect(int64_t key, const float* products) const {
    for (int64_t c = 0; head.p.has_p2c() && c < kPanel; ++c) {
      const float* mine = products + (key + c) * head.p.skewed();
      const int64_t highest = head.places(start + rows - 1, key + c)[0];
      for (int64_t row = head.places(start, key + c)[0]; row <= highest; row += 16)
        __builtin_prefetch(mine + row, 0, 2);
    }
  }

  void near_scores(int64_t key, float* s, Lanes* top) const {
    const Problem& p = head.p;
    expect(key, head.room.of_key);
    p.multiply<Begin::zero>(rows, p.cells(), {room.asking, p.cells(), 1}, head.room.keys + key * p.cells(), s, kPanel);
    int32_t shown[kPanel];
    for (int64_t c = 0; c < kPanel; ++c) shown[c] = key + c < head.end && (!head.valid || head.valid[key + c]) ? -1 : 0;
    if (!p.gradual) one_by_one(key, s);
    for (int64_t i = 0; i < rows; i += kLanes)
      for (int64_t c = 0; c < kPanel; c += kLanes) {
        Lanes added[kLanes];
        for_keys(start + i, key + c, added);
        for_queries(start + i, key + c, room.of_query + i * p.skewed(), added);
        take(added, load<Picks>(shown + c), s + i * kPanel + c, top + i);
      }
  }

  // Numbers whose places fall by at most one are within kLanes, so one load and a shuffle find them.
  void for_keys(int64_t query, int64_t key, Lanes* added) const {
    if (!head.p.has_p2c() || !head.p.gradual) {
      std::fill_n(added, kLanes, Lanes{});
      return;
    }
    const int64_t stride = head.p.skewed();
    const int32_t* place = head.places(query, key);
    const float* theirs = head.room.of_key + key * stride;
    Lanes square[kLanes];  // a key's numbers for kLanes queries, the last first
#pragma GCC unroll 16
    for (int64_t c = 0; c < kLanes; ++c, ++place, theirs += stride)
      square[c] = __builtin_shuffle(load<Lanes>(theirs + *place), load<Picks>(place - (kLanes - 1)) - *place);
    transpose(square);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) added[i] = square[kLanes - 1 - i];
  }

  void for_queries(int64_t query, int64_t key, const float* mine, Lanes* added) const {
    if (!head.p.has_c2p() || !head.p.gradual) return;
    const int64_t stride = head.p.skewed();
    const int32_t* place = head.places(query, key);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i, --place, mine += stride) {
      const int32_t lowest = place[kLanes - 1];
      added[i] += __builtin_shuffle(load<Lanes>(mine + lowest), load<Picks>(place) - lowest);
    }
  }

  static void take(const Lanes* added, const Picks& shown, float* s, Lanes* top) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i, s += kPanel) {
      const Lanes sum = shown ? load<Lanes>(s) + added[i] : all(kHidden);
      top[i] = larger(top[i], sum);
      store(s, sum);
    }
  }

  void one_by_one(int64_t key, float* s) const {
    const Problem& p = head.p;
    const int64_t stride = p.skewed(), count = std::min(kPanel, head.end - key);
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t* place = head.places(start + i, key);
      for (int64_t c = 0; p.has_c2p() && c < count; ++c) s[i * kPanel + c] += room.of_query[i * stride + place[c]];
      for (int64_t c = 0; p.has_p2c() && c < count; ++c)
        s[i * kPanel + c] += head.room.of_key[(key + c) * stride + place[c]];
    }
  }

  void drop(int64_t key, const float* from, float* to) const {
    for (int64_t i = 0; i < rows; ++i) {
      const auto row = head.p.dropout.row(head.pair, start + i);
      for (int64_t c = 0; c < kPanel; ++c) {
        const int64_t at = i * kPanel + c;
        to[at] = from[at] * head.p.dropout.factor(row, key + c);
      }
    }
  }

  // out (rows, wide) += strips (kRows, kPanel) of `count` keys from `first` on @ `panels` [wide / kPanel][n][kPanel],
  // or of pairs
  void mix(const float* strips, int64_t first, int64_t count, const float* panels, float* out) const {
    const Problem& p = head.p;
    if (p.halves) return mix_pairs(strips, first, count, panels, out);
    for (int64_t e = 0; e < p.wide(); e += kPanel)
      for (int64_t j = 0; j < count; j += kPanel)
        product<Begin::there>(rows, kPanel, {strips + j * kRows, kPanel, 1},
                              panels + e * p.padded() + (first + j) * kPanel, out + e, p.wide());
  }

  // The same with weights and values of bf16; all keys of the block are multiplied at once.
  void mix_pairs(const float* strips, int64_t first, int64_t count, const float* panels, float* out) const {
    const Problem& p = head.p;
    const int64_t cells = up(count, kPanel) / 2, stride = cells + kSkew;
    for (int64_t j = 0; j < count; j += kPanel)
      for (int64_t i = 0; i < rows; ++i)
        to_pairs(strips + j * kRows + i * kPanel, kPanel, room.paired + i * stride + j / 2);
    for (int64_t e = 0; e < p.wide(); e += kPanel)
      product<Begin::there, Cell::pair>(rows, cells, {room.paired, stride, 1},
                                        panels + e * p.padded() / 2 + first / 2 * kPanel, out + e, p.wide());
  }
};

}  // namespace
}  // namespace precis
