// The sizes, weights and memory of one decoding step.
//
// A T5-like decoder norms (RMS) before each part of a layer, has no biases, and a score for each head and distance.
// ProphetNet norms (LayerNorm) after each part and has biases; position scores depend on the state, through buckets of
// distances. Its tokens have two states: the main one, which later tokens attend to, and one that predicts the next
// token, and attends to its own key, too. The rows are the main states of all tokens, then their predicting ones.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <utility>
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
  // Columns of a part in memory.
  int64_t stride() const { return up(largest(), kPanel); }
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

// The matrices of a layer. The last exists in a gated network, or gives the position scores of ProphetNet.
enum Name { kQuery, kKey, kValue, kOutput, kSourceQuery, kSourceOutput, kUp, kDown, kGate, kNames };
constexpr Name kPositions = kGate;

// Memory of a part: rows of queries, keys, values, mixed values, inner states and position scores, and the scores of a
// query.
struct PartRoom {
  float *query, *key, *value, *mixed, *up, *gate, *positions, *scores;
};

struct Step {
  bool prophetnet;  // else T5-like
  int64_t documents, beams, states_each, width, heads, each, parts, threads;
  float eps, scale;  // of norms; of products of queries and keys
  Split columns, inner, positions;
  std::vector<Weights> matrices;     // kDown + 1 or kNames a layer
  std::vector<const float*> biases;  // of each matrix; empty if there are none
  int64_t layers, names;
  const float* norms;  // weights of each, and biases if there are any
  Weights head;
  int64_t vocabulary;
  bool halves;  // caches of bf16, else of fp32
  void* kept;   // (layers, 2, documents, heads, slots, each)
  int64_t slots, length;
  std::vector<const void*> source;  // keys and values of each layer, (documents, heads, words, each)
  int64_t words;
  const float* source_bias;  // (documents, words)
  const float* entries;      // (heads, distances): the score of each distance, 0 last
  const int64_t* buckets;    // (distances), instead of `entries`: the position score of each
  int64_t distances;
  const float* foreign;  // (documents, beams, steps of room, beams)
  int64_t foreign_room;

  int64_t tokens() const { return documents * beams; }
  int64_t rows() const { return tokens() * states_each; }
  int64_t document(int64_t row) const { return row % tokens() / beams; }
  int64_t wide() const { return up(width, kPanel); }
  int64_t states() const { return rows() * wide(); }
  int64_t most_scores() const { return up(std::max(length * beams + 1, words), kLanes); }
  Range all() const { return {0, rows()}; }
  // The rows that a layer computes. Of the last one nobody reads the main states if others predict.
  Range computed(int64_t layer) const { return layer + 1 < layers ? all() : Range{rows() - tokens(), tokens()}; }
  const Weights& matrix(int64_t layer, Name name) const { return matrices[layer * names + name]; }
  const float* bias(int64_t layer, Name name) const { return biases.empty() ? nullptr : biases[layer * names + name]; }
  const float* norm(int64_t index) const { return norms + index * width * (prophetnet ? 2 : 1); }
  template <typename Number>
  Number* past(int64_t layer, int64_t which, int64_t document, int64_t head) const {
    const int64_t place = ((layer * 2 + which) * documents + document) * heads + head;
    return static_cast<Number*>(kept) + place * slots * each;
  }
  template <typename Number>
  const Number* of_source(int64_t layer, int64_t which, int64_t document, int64_t head) const {
    return static_cast<const Number*>(source[2 * layer + which]) + (document * heads + head) * words * each;
  }

  int64_t part_room() const {
    return rows() * (4 * columns.stride() + 2 * inner.stride() + positions.stride()) + most_scores();
  }
  PartRoom room(float* at) const {
    const auto next = [&](const Split& split) { return std::exchange(at, at + rows() * split.stride()); };
    return {next(columns), next(columns), next(columns), next(columns), next(inner), next(inner), next(positions), at};
  }
};

}  // namespace
}  // namespace precis
