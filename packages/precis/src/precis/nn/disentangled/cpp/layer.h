// What one part of a layer adds to the hidden states: its heads' attention, or its columns of the feed-forward network.
#pragma once

#include "step.h"

namespace precis {
namespace {

// Multiplies rows of states by a part's outputs of a matrix.
inline void of_part(const Step& s, int64_t layer, Name name, const Split& split, int64_t part, Range rows,
                    const float* states, float* out) {
  const Weights& matrix = s.matrix(layer, name);
  const auto [start, count] = split.of(part);
  const int64_t stride = split.stride();
  out += rows.start * stride;
  multiply(rows.count, s.width, states + rows.start * s.wide(), s.wide(),
           matrix.from(split.of_outputs(matrix, part, s.width)), count, out, stride);
  if (const float* bias = s.bias(layer, name))
    for (int64_t row = 0; row < rows.count; ++row) add(bias + start, count, out + row * stride);
}

// Multiplies what a part computed by its inputs of a matrix.
inline void from_part(const Step& s, int64_t layer, Name name, const Split& split, int64_t part, const float* mine,
                      float* out) {
  const Weights& matrix = s.matrix(layer, name);
  const auto [start, count] = s.computed(layer);
  multiply(count, split.of(part).count, mine + start * split.stride(), split.stride(),
           matrix.from(split.of_inputs(matrix, part, s.width)), s.width, out + start * s.wide(), s.wide());
}

// Calls `work` for each row that a layer computes; rows of a document follow each other, as they read the same keys.
template <typename Work>
inline void for_rows(const Step& s, int64_t layer, const Work& work) {
  for (int64_t token = 0; token < s.tokens(); ++token)
    for (int64_t row = s.computed(layer).start + token; row < s.rows(); row += s.tokens()) work(row);
}

// Stores the new keys and values of a head.
template <typename Number>
inline void remember(const Step& s, int64_t layer, int64_t head, const float* keys, const float* values) {
  const int64_t stride = s.columns.stride();
  for (int64_t row = 0; row < s.tokens(); ++row) {
    const int64_t document = row / s.beams, slot = (s.length - 1) * s.beams + row % s.beams;
    std::copy_n(keys + row * stride, s.each, s.past<Number>(layer, 0, document, head) + slot * s.each);
    std::copy_n(values + row * stride, s.each, s.past<Number>(layer, 1, document, head) + slot * s.each);
  }
}

// The position scores of all slots for a row; the slots of other beams are hidden. If there are buckets, `mine` has the
// row's score for each, and the last score is that of the own key.
inline void position_scores(const Step& s, int64_t row, int64_t head, const float* mine, float* scores) {
  const int64_t ahead = row / s.tokens(), first = s.distances - ahead - s.length;
  const float* entries = s.buckets ? nullptr : s.entries + head * s.distances;
  const float* foreign = s.foreign ? s.foreign + row % s.tokens() * s.foreign_room * s.beams : nullptr;
  for (int64_t t = 0; t < s.length; ++t) {
    const float score = s.buckets ? mine[s.buckets[first + t]] : entries[first + t];
    for (int64_t beam = 0; beam < s.beams; ++beam)
      scores[t * s.beams + beam] = foreign ? score + foreign[t * s.beams + beam] : score;
  }
  if (s.buckets) scores[s.length * s.beams] = mine[s.buckets[s.distances - 1]];
}

template <typename Number>
inline void attend_to_past(const Step& s, int64_t layer, int64_t part, const float* states, const PartRoom& room,
                           float* out) {
  of_part(s, layer, kQuery, s.columns, part, s.computed(layer), states, room.query);
  of_part(s, layer, kKey, s.columns, part, s.all(), states, room.key);
  of_part(s, layer, kValue, s.columns, part, s.all(), states, room.value);
  if (s.prophetnet) of_part(s, layer, kPositions, s.positions, part, s.computed(layer), states, room.positions);
  const Range mine = s.columns.of(part);
  const int64_t stride = s.columns.stride(), wide = s.positions.stride(), slots = s.length * s.beams;
  for (int64_t at = 0; at < mine.count; at += s.each) {
    const int64_t head = (mine.start + at) / s.each;
    remember<Number>(s, layer, head, room.key + at, room.value + at);
    for_rows(s, layer, [&](int64_t row) {
      const int64_t place = row * stride + at, document = s.document(row);
      position_scores(s, row, head, room.positions + row * wide + at / s.each * s.positions.unit, room.scores);
      const Own own = row < s.tokens() ? Own{} : Own{room.key + place, room.value + place};
      mix(room.query + place, s.past<Number>(layer, 0, document, head), s.past<Number>(layer, 1, document, head), slots,
          s.each, own, s.scale, room.scores, room.mixed + place);
    });
  }
  from_part(s, layer, kOutput, s.columns, part, room.mixed, out);
}

template <typename Number>
inline void attend_to_source(const Step& s, int64_t layer, int64_t part, const float* states, const PartRoom& room,
                             float* out) {
  of_part(s, layer, kSourceQuery, s.columns, part, s.computed(layer), states, room.query);
  const Range mine = s.columns.of(part);
  const int64_t stride = s.columns.stride();
  for (int64_t at = 0; at < mine.count; at += s.each)
    for_rows(s, layer, [&](int64_t row) {
      const int64_t document = s.document(row), place = row * stride + at, head = (mine.start + at) / s.each;
      if (s.source_bias)
        std::copy_n(s.source_bias + document * s.words, s.words, room.scores);
      else
        std::fill_n(room.scores, s.words, 0.0f);
      mix(room.query + place, s.of_source<Number>(layer, 0, document, head),
          s.of_source<Number>(layer, 1, document, head), s.words, s.each, Own{}, s.scale, room.scores,
          room.mixed + place);
    });
  from_part(s, layer, kSourceOutput, s.columns, part, room.mixed, out);
}

inline void feed_forward(const Step& s, int64_t layer, int64_t part, const float* states, const PartRoom& room,
                         float* out) {
  const Range rows = s.computed(layer);
  const int64_t before = rows.start * s.inner.stride(), count = rows.count * s.inner.stride();
  of_part(s, layer, kUp, s.inner, part, rows, states, room.up);
  if (s.prophetnet) {
    gelu(room.up + before, count);
  } else if (s.names == kNames) {
    of_part(s, layer, kGate, s.inner, part, rows, states, room.gate);
    gate_by_gelu(room.gate + before, room.up + before, count);
  } else {
    relu(room.up + before, count);
  }
  from_part(s, layer, kDown, s.inner, part, room.up, out);
}

}  // namespace
}  // namespace precis
