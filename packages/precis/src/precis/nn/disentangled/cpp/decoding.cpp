// A decoding step of a T5-like decoder (Z-Code++'s) or ProphetNet's in one call and one parallel region: the logits of
// the next tokens.
//
// A layer is split into parts: some of its heads, and some inner columns of its feed-forward network. A part computes
// its own queries, keys and values, attends, and multiplies the result by its own inputs of the output matrix. The sum
// over the parts is the layer's output (Megatron-LM's split, Shoeybi et al. 2019), so threads meet three times a layer.
// The number of parts depends on the model only, and they are added in order: results do not depend on the threads.
//
// With few rows a step takes the time to read the weights, so each part reads its panels from start to end.

#if !defined(__GNUC__) || defined(__clang__)
#error "only GCC's OpenMP is known to share torch's threads"
#endif

#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/library.h>

#include "layer.h"
#include "meeting.h"

namespace precis {
namespace {

Matrix readable(const Tensor& x) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && x.scalar_type() == at::kFloat && x.is_cpu(),
              "matrices: dense, fp32, on the CPU");
  return {x.data_ptr<float>(), x.size(0), x.size(1), x.size(1)};
}

// Packs a matrix (outputs, inputs) into the panels of each part, of 32, 16 or 8 bits a number; `unit` outputs or inputs
// belong together.
Tensor pack(const Tensor& weight, int64_t parts, int64_t unit, bool by_outputs, int64_t bits) {
  const Matrix x = readable(weight);
  const Split split{by_outputs ? x.rows : x.columns, unit, parts};
  TORCH_CHECK(unit > 0 && parts > 0 && split.total % unit == 0, "parts: whole units");
  TORCH_CHECK(bits == 32 || bits == 16 || bits == 8, "bits: 32, 16 or 8");
  const auto before = [&](int64_t part) {
    const Weights kind{nullptr, bits};
    return by_outputs ? split.of_outputs(kind, part, x.columns) : split.of_inputs(kind, part, x.rows);
  };
  const auto type = bits == 32 ? at::kFloat : bits == 16 ? at::kBFloat16 : at::kChar;
  Tensor packed = at::empty({before(parts) * 8 / bits}, type);
  auto* data = static_cast<char*>(packed.data_ptr());
  std::vector<float> panels;
  for (int64_t p = 0; p < parts; ++p) {
    const auto [start, count] = split.of(p);
    const Matrix part = by_outputs ? x.some(start, count) : Matrix{x.data + start, x.rows, count, x.stride};
    panels.resize(up(part.rows, kPanel) * part.columns);
    pack_columns(part, 0, part.rows, panels.data());
    if (bits == 32) std::copy(panels.begin(), panels.end(), reinterpret_cast<float*>(data + before(p)));
    if (bits == 16) std::copy(panels.begin(), panels.end(), reinterpret_cast<c10::BFloat16*>(data + before(p)));
    for (int64_t panel = 0; bits == 8 && panel * kPanel < part.rows; ++panel)
      to_bytes(panels.data() + panel * kPanel * part.columns, part.columns,
               data + before(p) + panel * kPanel * (kScale + part.columns));
  }
  return packed;
}

using Work = void (*)(const Step&, int64_t layer, int64_t part, const float* states, const PartRoom&, float* out);
template <typename Number>
constexpr Work kWork[] = {attend_to_past<Number>, attend_to_source<Number>, feed_forward};
constexpr Name kLast[] = {kOutput, kSourceOutput, kDown};  // the matrix whose outputs a work adds to the states
constexpr int64_t kMeetings = 3;
constexpr int64_t kChunks = 16;  // of the vocabulary

// Adds to the hidden states what the parts computed before a meeting, and normalizes: ProphetNet the states themselves.
void take_in(const Step& s, int64_t meeting, const float* parts, float* states, float* normed) {
  const int64_t layer = (meeting - 1) / kMeetings;
  const Range rows = meeting ? s.computed(layer) : s.all();
  for (int64_t row = rows.start; row < rows.start + rows.count; ++row) {
    const int64_t place = row * s.wide();
    float* x = states + place;
    const float* bias = meeting ? s.bias(layer, kLast[(meeting - 1) % kMeetings]) : nullptr;
    if (bias) add(bias, s.width, x);
    for (int64_t p = 0; meeting && p < s.parts; ++p) add(parts + p * s.states() + place, s.wide(), x);
    if (s.prophetnet)
      layer_norm(x, s.norm(meeting), s.norm(meeting) + s.width, s.width, s.eps, x);
    else
      rms_norm(x, s.norm(meeting), s.width, s.eps, normed + place);
  }
}

// The logits of a chunk of the vocabulary, from the states that predict the next tokens.
void predict(const Step& s, int64_t chunk, const float* states, float* logits) {
  const int64_t panels = up(s.vocabulary, kPanel) / kPanel, first = panels * chunk / kChunks;
  const int64_t count = panels * (chunk + 1) / kChunks - first;
  multiply(s.tokens(), s.width, states + (s.rows() - s.tokens()) * s.wide(), s.wide(),
           s.head.from(s.head.size(first * kPanel, s.width)), count * kPanel, logits + first * kPanel,
           up(s.vocabulary, kPanel));
}

// The work of one thread; returns how many parts it did. Every thread keeps all hidden states, and adds what the parts
// of a layer add to them, also those that others did before it came.
int64_t run(const Step& s, std::vector<Meeting>& meetings, float* states, float* normed, float* parts, float* rooms,
            float* logits) {
  const int64_t last = kMeetings * s.layers;
  const float* read = s.prophetnet ? states : normed;
  const Work* work = s.halves ? kWork<c10::BFloat16> : kWork<float>;
  int64_t mine = 0;
  for (int64_t meeting = 0; meeting <= last; ++meeting) {
    float* added = parts + meeting * s.parts * s.states();
    take_in(s, meeting, added - s.parts * s.states(), states, normed);
    const int64_t all = meeting == last ? kChunks : s.parts;
    for (int64_t p; (p = meetings[meeting].take()) < all; ++mine) {
      if (meeting == last) {
        predict(s, p, read, logits);
      } else {
        work[meeting % kMeetings](s, meeting / kMeetings, p, read, s.room(rooms + p * s.part_room()),
                                  added + p * s.states());
        meetings[meeting].finish(s.parts);
      }
    }
    if (meeting < last) meetings[meeting].wait(s.parts);
  }
  return mine;
}

Tensor run_all(const Step& s, const Tensor& states) {
  const int64_t all = s.states(), times = kMeetings * s.layers, threads = Crew::threads(s.threads);
  Tensor memory = at::empty({2 * threads * all + times * s.parts * all + s.parts * s.part_room()}, at::kFloat);
  Tensor logits = at::empty({s.tokens(), up(s.vocabulary, kPanel)}, at::kFloat);
  float *own = memory.data_ptr<float>(), *parts = own + 2 * threads * all, *rooms = parts + times * s.parts * all;
  float *out = logits.data_ptr<float>(), *given = states.data_ptr<float>();
  std::vector<Meeting> meetings(times + 1);
  int64_t first = 0;
#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    const int64_t thread = omp_get_thread_num();
    float* mine = own + 2 * thread * all;
    std::fill_n(mine, 2 * all, 0.0f);
    for (int64_t row = 0; row < s.rows(); ++row) std::copy_n(given + row * s.width, s.width, mine + row * s.wide());
    const int64_t done = run(s, meetings, mine, mine + all, parts, rooms, out);
    if (thread == 0) first = done;
  }
  Crew::record(threads, first, times * s.parts + kChunks);
  logits = logits.narrow(1, 0, s.vocabulary);
  return logits.contiguous();
}

std::vector<const float*> places(at::TensorList all, const char* what) {
  std::vector<const float*> found;
  for (const Tensor& x : all) {
    TORCH_CHECK(x.is_contiguous() && x.scalar_type() == at::kFloat && x.is_cpu(), what, ": dense, fp32, on the CPU");
    found.push_back(x.data_ptr<float>());
  }
  return found;
}

std::vector<Weights> packed(at::TensorList all) {
  std::vector<Weights> found;
  for (const Tensor& x : all) {
    const at::ScalarType type = x.scalar_type();
    TORCH_CHECK(type == at::kFloat || type == at::kBFloat16 || type == at::kChar, "matrices: fp32, bf16 or 8 bits");
    TORCH_CHECK(x.is_contiguous() && x.is_cpu(), "matrices: see `pack`");
    found.push_back({static_cast<const char*>(x.data_ptr()), 8 * x.element_size()});
  }
  return found;
}

void add_caches(Step& s, const Tensor& kept, at::TensorList source, const std::optional<Tensor>& source_bias,
                const Tensor& entries, const std::optional<Tensor>& foreign, int64_t length) {
  TORCH_CHECK(static_cast<int64_t>(source.size()) == 2 * s.layers, "source: keys and values of each layer");
  s.halves = kept.scalar_type() == at::kBFloat16;
  TORCH_CHECK(kept.is_contiguous() && kept.is_cpu() && (s.halves || kept.scalar_type() == at::kFloat),
              "kept: dense, fp32 or bf16, on the CPU");
  s.kept = kept.data_ptr(), s.slots = kept.size(4), s.length = length, s.words = source[0].size(2);
  s.source_bias = source_bias ? places({*source_bias}, "source_bias")[0] : nullptr;
  s.foreign = foreign ? places({*foreign}, "foreign")[0] : nullptr;
  s.foreign_room = foreign ? foreign->size(2) : 0;
  s.distances = entries.size(-1);
  TORCH_CHECK(length > 0 && length * s.beams <= s.slots && length + s.states_each - 1 <= s.distances,
              "length: beyond the caches");
  for (const Tensor& x : source) {
    TORCH_CHECK(x.sizes() == at::IntArrayRef({s.documents, s.heads, s.words, s.each}) && x.is_contiguous() &&
                x.is_cpu() && x.scalar_type() == kept.scalar_type(), "source: (b h s e), like `kept`");
    s.source.push_back(x.data_ptr());
  }
  TORCH_CHECK(!source_bias || source_bias->numel() == s.documents * s.words, "source_bias: (b 1 1 s)");
  TORCH_CHECK(!foreign || (foreign->sizes() == at::IntArrayRef({s.documents, s.beams, s.foreign_room, s.beams}) &&
                           length <= s.foreign_room), "foreign: (b k t k)");
}

// The same numbers in fp32; a model with bf16 caches has bf16 scores, too. Buckets stay whole numbers.
Tensor in_fp32(const Tensor& x) { return x.is_floating_point() ? x.to(at::kFloat).contiguous() : x; }

std::optional<Tensor> in_fp32(const std::optional<Tensor>& x) {
  return x ? std::optional<Tensor>(in_fp32(*x)) : std::nullopt;
}

// What differs between the two kinds of decoders; ProphetNet has two states for each token.
void add_kind(Step& s, at::TensorList biases, const Tensor& norms, const Tensor& entries) {
  s.prophetnet = !biases.empty(), s.states_each = s.prophetnet ? 2 : 1;
  s.biases = places(biases, "biases"), s.norms = places({norms}, "norms")[0];
  TORCH_CHECK(norms.sizes() == at::IntArrayRef({kMeetings * s.layers + 1, s.states_each, s.width}),
              "norms: three a layer, and one; weights, and biases of ProphetNet's");
  if (!s.prophetnet) {
    s.entries = places({entries}, "entries")[0];
    TORCH_CHECK(entries.dim() == 2 && entries.size(0) == s.heads, "entries: (h r)");
    return;
  }
  TORCH_CHECK(s.names == kNames && biases.size() == s.matrices.size(), "biases: one for each matrix, 9 of each layer");
  TORCH_CHECK(entries.dim() == 1 && entries.scalar_type() == at::kLong && entries.is_contiguous(), "entries: (r)");
  const int64_t columns = biases[kPositions].numel();
  s.buckets = entries.data_ptr<int64_t>(), s.positions = {columns, columns / s.heads, s.parts};
  const auto has_score = [&](int64_t bucket) { return bucket >= 0 && bucket < s.positions.unit; };
  TORCH_CHECK(std::all_of(s.buckets, s.buckets + entries.numel(), has_score), "entries: buckets with a score");
}

// Reads one more token of each beam; stores its keys and values in `kept` (l 2 b h slots e), at step `length` - 1.
Tensor step(const Tensor& states, double scale, at::TensorList matrices, at::TensorList biases, const Tensor& norms,
            const Tensor& head, int64_t vocabulary, int64_t inner, int64_t parts, double eps, const Tensor& kept,
            at::TensorList source, const std::optional<Tensor>& source_bias, const Tensor& entries,
            const std::optional<Tensor>& foreign, int64_t length) {
  TORCH_CHECK(kept.dim() == 6 && kept.size(1) == 2, "kept: (l 2 b h slots e)");
  Step s{};
  s.documents = kept.size(2), s.heads = kept.size(3), s.each = kept.size(5), s.layers = kept.size(0);
  s.beams = foreign ? foreign->size(1) : 1, s.width = states.size(1), s.parts = parts;
  s.threads = omp_in_parallel() ? 1 : std::min<int64_t>(at::get_num_threads(), parts);
  s.columns = {s.heads * s.each, s.each, parts}, s.inner = {inner, 1, parts}, s.positions = {0, 1, parts};
  s.matrices = packed(matrices), s.names = static_cast<int64_t>(matrices.size()) / s.layers;
  TORCH_CHECK(s.names == kNames || s.names == kGate, "matrices: 8 or 9 of each layer");
  s.head = packed({head})[0], s.vocabulary = vocabulary;
  s.eps = static_cast<float>(eps), s.scale = static_cast<float>(scale);
  TORCH_CHECK(static_cast<int64_t>(head.nbytes()) == s.head.size(up(vocabulary, kPanel), s.width),
              "head: the panels of the vocabulary");
  const Tensor scores = in_fp32(entries), given = in_fp32(states);
  const std::optional<Tensor> padding = in_fp32(source_bias), others = in_fp32(foreign);
  add_kind(s, biases, norms, scores);
  places({given}, "states");
  TORCH_CHECK(given.dim() == 2 && given.size(0) == s.rows(), "states: (n*b*k d), beams need `foreign`");
  add_caches(s, kept, source, padding, scores, others, length);
  return run_all(s, given);
}

}  // namespace
}  // namespace precis

TORCH_LIBRARY(precis_decoding, m) {
  m.def("pack", &precis::pack);
  m.def("step", &precis::step);
}
