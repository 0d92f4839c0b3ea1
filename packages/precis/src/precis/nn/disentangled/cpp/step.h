// The sizes, weights and memory of one decoding step of a T5-like decoder.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "bytes.h"

namespace precis {
namespace {

using at::Tensor;

struct Range {
  int64_t start, count;
};

// A dimension of `parts` parts, in whole units: the columns of heads, or the inner columns of a feed-forward network.
struct Split {
  int64_t total, unit, parts;
  Range of(int64_t part) const {
    const int64_t units = total / unit, start = units * part / parts;
    return {start * unit, (units * (part + 1) / parts - start) * unit};
  }
  int64_t largest() const {
    int64_t most = 0;
    for (int64_t p = 0; p < parts; ++p) most = std::max(most, of(p).count);
    return most;
  }
  // Where a part's panels begin, if the outputs of a matrix (outputs, depth) are split, or its inputs.
  int64_t of_outputs(const Weights& weights, int64_t part, int64_t depth) const {
    int64_t before = 0;
    for (int64_t p = 0; p < part; ++p) before += weights.size(up(of(p).count, kPanel), depth);
    return before;
  }
  int64_t of_inputs(const Weights& weights, int64_t part, int64_t outputs) const {
    int64_t before = 0;
    for (int64_t p = 0; p < part; ++p) before += weights.size(up(outputs, kPanel), of(p).count);
    return before;
  }
};

// The matrices of a layer; `gate` is the last, and exists in a gated network only.
enum Name { kQuery, kKey, kValue, kOutput, kSourceQuery, kSourceOutput, kUp, kDown, kGate, kNames };

// Memory of a part: rows of queries, keys, values, mixed values and inner states, and the scores of a query.
struct PartRoom {
  float *query, *key, *value, *mixed, *up, *gate, *scores;
};

struct Step {
  int64_t documents, beams, width, heads, each, parts, threads;
  float eps;
  Split columns, inner;
  std::vector<Weights> matrices;  // kDown + 1 or kNames a layer
  int64_t layers, names;
  const float* norms;
  Weights head;
  int64_t vocabulary;
  float* kept;  // (layers, 2, documents, heads, slots, each)
  int64_t slots, length;
  std::vector<const float*> source;  // keys and values of each layer, (documents, heads, words, each)
  int64_t words;
  const float* source_bias;  // (documents, words)
  const float* entries;      // (heads, distances): the score of each distance, 0 last
  int64_t distances;
  const float* foreign;  // (documents, beams, steps of room, beams)
  int64_t foreign_room;

  int64_t rows() const { return documents * beams; }
  int64_t wide() const { return up(width, kPanel); }
  int64_t states() const { return rows() * wide(); }
  int64_t column_stride() const { return up(columns.largest(), kPanel); }
  int64_t inner_stride() const { return up(inner.largest(), kPanel); }
  int64_t most_scores() const { return up(std::max(length * beams, words), kLanes); }
  const Weights& matrix(int64_t layer, Name name) const { return matrices[layer * names + name]; }
  const float* norm(int64_t index) const { return norms + index * width; }
  float* past(int64_t layer, int64_t which, int64_t document, int64_t head) const {
    return kept + (((layer * 2 + which) * documents + document) * heads + head) * slots * each;
  }

  int64_t part_room() const { return 4 * rows() * column_stride() + 2 * rows() * inner_stride() + most_scores(); }
  PartRoom room(float* at) const {
    const int64_t columns_here = rows() * column_stride(), inner_here = rows() * inner_stride();
    float* inner_at = at + 4 * columns_here;
    return {at, at + columns_here, at + 2 * columns_here, at + 3 * columns_here, inner_at, inner_at + inner_here,
            inner_at + 2 * inner_here};
  }
};

}  // namespace
}  // namespace precis
