// What one part of a layer adds to the hidden states: its heads' attention, or its columns of the feed-forward network.
#pragma once

#include "step.h"

namespace precis {
namespace {

// Multiplies normalized states by a part's outputs of a matrix.
inline void of_part(const Step& s, const Weights& matrix, const Split& split, int64_t part, const float* states,
                    float* out, int64_t stride) {
  multiply(s.rows(), s.width, states, s.wide(), matrix.from(split.of_outputs(matrix, part, s.width)),
           split.of(part).count, out, stride);
}

// Multiplies what a part computed by its inputs of a matrix.
inline void from_part(const Step& s, const Weights& matrix, const Split& split, int64_t part, const float* mine,
                      int64_t stride, float* out) {
  multiply(s.rows(), split.of(part).count, mine, stride, matrix.from(split.of_inputs(matrix, part, s.width)), s.width,
           out, s.wide());
}

// Stores the new keys and values of a head.
inline void remember(const Step& s, int64_t layer, int64_t head, const float* keys, const float* values) {
  for (int64_t row = 0; row < s.rows(); ++row) {
    const int64_t document = row / s.beams, slot = (s.length - 1) * s.beams + row % s.beams;
    std::copy_n(keys + row * s.column_stride(), s.each, s.past(layer, 0, document, head) + slot * s.each);
    std::copy_n(values + row * s.column_stride(), s.each, s.past(layer, 1, document, head) + slot * s.each);
  }
}

// The position scores of all slots for a beam; the slots of other beams are hidden.
inline void position_scores(const Step& s, int64_t row, int64_t head, float* scores) {
  const float* entries = s.entries + (head + 1) * s.distances - s.length;
  if (!s.foreign) {
    std::copy_n(entries, s.length, scores);
    return;
  }
  const float* foreign = s.foreign + row * s.foreign_room * s.beams;
  for (int64_t t = 0; t < s.length; ++t)
    for (int64_t beam = 0; beam < s.beams; ++beam) scores[t * s.beams + beam] = entries[t] + foreign[t * s.beams + beam];
}

inline void attend_to_past(const Step& s, int64_t layer, int64_t part, const float* states, const PartRoom& room,
                           float* out) {
  const int64_t stride = s.column_stride();
  of_part(s, s.matrix(layer, kQuery), s.columns, part, states, room.query, stride);
  of_part(s, s.matrix(layer, kKey), s.columns, part, states, room.key, stride);
  of_part(s, s.matrix(layer, kValue), s.columns, part, states, room.value, stride);
  const Range mine = s.columns.of(part);
  for (int64_t at = 0; at < mine.count; at += s.each) {
    const int64_t head = (mine.start + at) / s.each;
    remember(s, layer, head, room.key + at, room.value + at);
    for (int64_t row = 0; row < s.rows(); ++row) {
      position_scores(s, row, head, room.scores);
      mix(room.query + row * stride + at, s.past(layer, 0, row / s.beams, head), s.past(layer, 1, row / s.beams, head),
          s.length * s.beams, s.each, room.scores, room.mixed + row * stride + at);
    }
  }
  from_part(s, s.matrix(layer, kOutput), s.columns, part, room.mixed, stride, out);
}

inline void attend_to_source(const Step& s, int64_t layer, int64_t part, const float* states, const PartRoom& room,
                             float* out) {
  const int64_t stride = s.column_stride();
  of_part(s, s.matrix(layer, kSourceQuery), s.columns, part, states, room.query, stride);
  const Range mine = s.columns.of(part);
  for (int64_t at = 0; at < mine.count; at += s.each)
    for (int64_t row = 0; row < s.rows(); ++row) {
      const int64_t document = row / s.beams, past = (document * s.heads + (mine.start + at) / s.each) * s.words * s.each;
      if (s.source_bias)
        std::copy_n(s.source_bias + document * s.words, s.words, room.scores);
      else
        std::fill_n(room.scores, s.words, 0.0f);
      mix(room.query + row * stride + at, s.source[2 * layer] + past, s.source[2 * layer + 1] + past, s.words, s.each,
          room.scores, room.mixed + row * stride + at);
    }
  from_part(s, s.matrix(layer, kSourceOutput), s.columns, part, room.mixed, stride, out);
}

inline void feed_forward(const Step& s, int64_t layer, int64_t part, const float* states, const PartRoom& room,
                         float* out) {
  const int64_t stride = s.inner_stride(), count = s.rows() * stride;
  of_part(s, s.matrix(layer, kUp), s.inner, part, states, room.up, stride);
  if (s.names == kNames) {
    of_part(s, s.matrix(layer, kGate), s.inner, part, states, room.gate, stride);
    gate_by_gelu(room.gate, room.up, count);
  } else {
    relu(room.up, count);
  }
  from_part(s, s.matrix(layer, kDown), s.inner, part, room.up, stride, out);
}

}  // namespace
}  // namespace precis
