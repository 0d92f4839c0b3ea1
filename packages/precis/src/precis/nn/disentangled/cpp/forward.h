// The forward pass: a running softmax over blocks of keys.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <tuple>

#include "tile.h"

namespace precis {
namespace {

// The backward pass's data of each row of a head: weight = e^(score - highest) * share.
struct Sums {
  float *highest, *share;
  Sums(const Tensor& both, int64_t pair)  // (2 pairs n)
      : highest(both.data_ptr<float>() + pair * both.stride(1)), share(highest + both.stride(0)) {}
};

// Weights of a head before dropout, strip by strip of each tile, or null.
struct Kept {
  float* data;
  int64_t tile_size;
  Kept(const Tensor& weights, int64_t pair)  // (pairs tiles strips*kRows*kPanel), or empty
      : data(weights.numel() ? weights.data_ptr<float>() + pair * weights.stride(0) : nullptr),
        tile_size(weights.stride(1)) {}
  float* tile(int64_t start) const { return data + start / kRows * tile_size; }
};

// The softmax of a tile's rows so far.
struct Running {
  float highest[kRows];
  Lanes total[kRows], top[kRows];

  explicit Running(int64_t rows) {
    std::fill_n(highest, rows, kLowest);
    std::fill_n(total, rows, Lanes{});
  }
  void begin_block() { std::fill_n(top, kRows, all(kLowest)); }

  // Shrinks the sums of rows that found a higher score.
  void raise(int64_t rows, float* mixed, int64_t wide) {
    for (int64_t i = 0; i < rows; ++i) {
      const float most = largest(top[i]);
      if (most <= highest[i]) continue;
      const float shrink = exponential(highest[i] - most);
      total[i] *= shrink;
      for (int64_t e = 0; e < wide; ++e) mixed[i * wide + e] *= shrink;
      highest[i] = most;
    }
  }

  void weigh(int64_t rows, float* s) {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = s + i * kPanel;
      const Lanes low = exponential(load<Lanes>(row) - highest[i]);
      const Lanes high = exponential(load<Lanes>(row + kLanes) - highest[i]);
      total[i] += low + high;
      store(row, low);
      store(row + kLanes, high);
    }
  }
};

// Keeps the weights of a tile's rows after one block with all keys.
void keep(const Running& running, int64_t rows, int64_t count, const float* s, float* to) {
  float share[kRows];
  for (int64_t i = 0; i < rows; ++i) share[i] = 1.0f / sum_of(running.total[i]);
  for (int64_t j = 0; j < count; j += kPanel)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < kPanel; ++c) {
        const int64_t at = j * kRows + i * kPanel + c;
        to[at] = s[at] * share[i];
      }
}

void forward_tile(const Head& head, int64_t index, const TileRoom& room, const Matrix& out, const Sums& sums,
                  const Kept& kept) {
  const Problem& p = head.p;
  Tile tile(head, index, room);
  const int64_t rows = tile.rows, wide = p.wide(), block = kept.data ? kKept : kBlock;
  Running running(rows);
  std::fill_n(room.mixed, rows * wide, 0.0f);
  tile.ask();
  for (int64_t first = 0; first < head.end; first += block) {
    const int64_t count = std::min(block, head.end - first);
    running.begin_block();
    for (int64_t j = 0; j < count; j += kPanel) tile.scores(first + j, room.scores + j * kRows, running.top);
    running.raise(rows, room.mixed, wide);
    for (int64_t j = 0; j < count; j += kPanel) running.weigh(rows, room.scores + j * kRows);
    if (kept.data) keep(running, rows, count, room.scores, kept.tile(tile.start));
    for (int64_t j = 0; p.dropout.active() && j < count; j += kPanel)
      tile.drop(first + j, room.scores + j * kRows, room.scores + j * kRows);
    tile.mix(room.scores, first, count, head.room.values, room.mixed);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const float share = sums.share[tile.start + i] = 1.0f / sum_of(running.total[i]);
    sums.highest[tile.start + i] = running.highest[i];
    float* to = out.row(tile.start + i);
    for (int64_t e = 0; e < p.width; ++e) to[e] = room.mixed[i * wide + e] * share;
  }
}

Tensor heads_inside(const Problem& p) {  // (b h n e) with heads that can be merged without a copy
  const auto row = p.heads * p.width;
  return at::empty_strided({p.batch, p.heads, p.length, p.width}, {p.length * row, p.width, row, 1}, at::kFloat);
}

std::tuple<Tensor, Tensor, Tensor> forward_pass(const Problem& p, bool keeping) {
  Tensor out = heads_inside(p), sums = at::empty({2, p.pairs(), p.length}, at::kFloat);
  const Tensor weights = at::empty({keeping ? p.pairs() : 0, p.tiles(), kRows * p.padded()}, at::kFloat);
  const int64_t threads = at::get_num_threads(), block = std::min(keeping ? kKept : kBlock, p.length);
  const auto tiles = tile_rooms(p, threads, block, false);
  const auto work = [&](const Head& head, int64_t tile) {
    const Matrix to = p.of(out, head.pair);
    forward_tile(head, tile, tiles.at(at::get_thread_num()), to, Sums(sums, head.pair), Kept(weights, head.pair));
  };
  if (p.pairs() >= std::min<int64_t>(2 * threads, p.tiles())) {  // each thread processes one head at a time
    const auto rooms = head_rooms(p, std::min(threads, p.pairs()), false);
    at::parallel_for(0, p.pairs(), 1, [&](int64_t from, int64_t to) {
      for (int64_t pair = from; pair < to; ++pair) {
        const Head head(p, pair, rooms.at(at::get_thread_num()));
        for (int64_t tile = 0; tile < p.tiles(); ++tile) head.prepare(tile, false);
        for (int64_t tile = 0; tile < p.tiles(); ++tile) work(head, tile);
      }
    });
    return {out, sums, weights};
  }
  const auto rooms = head_rooms(p, 1, false);
  for (int64_t pair = 0; pair < p.pairs(); ++pair) {  // all threads on one head
    const Head head(p, pair, rooms.at(0));
    at::parallel_for(0, p.tiles(), 1, [&](int64_t from, int64_t to) {
      for (int64_t tile = from; tile < to; ++tile) head.prepare(tile, false);
    });
    at::parallel_for(0, p.tiles(), 1, [&](int64_t from, int64_t to) {
      for (int64_t tile = from; tile < to; ++tile) work(head, tile);
    });
  }
  return {out, sums, weights};
}

}  // namespace
}  // namespace precis
