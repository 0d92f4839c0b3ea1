// Disentangled attention on the CPU: softmax(scale * q.k + c2p + p2c) @ v without a tensor of n x n scores.
//
// Tiles of queries are combined with blocks of keys under a running softmax (FlashAttention, Dao et al. 2022). Each
// score adds two numbers from products with the table, q_i . K_r[d] and k_j . Q_r[d] with d = delta(i, j): the first
// are computed for a tile of queries, the second once for all keys of a head. `places` has the table row of every
// distance in descending order, so that pair (i, j) finds its row at n - 1 - i + j, and rows never rise along it.
//
// Scores are stored in strips of kPanel keys, (kRows, kPanel) numbers that stay in the first-level cache while they
// are computed, shifted and weighted. Strips whose pairs share one table row cost as much as without positions.
//
// fp32 is computed directly, and so is bf16 if the processor multiplies pairs of it (`halves`); else it is converted
// to fp32 first.
//
// The backward pass reads the weights if the forward pass kept them, as it does for short inputs. Otherwise it
// recomputes them from each row's highest score and the inverse of its sum. (A single logarithm of both would lose
// digits for large scores.) A head is processed in a fixed order, whatever the threads, so results are the same.

#if !defined(__GNUC__) || defined(__clang__)
#error "only GCC's OpenMP is known to share torch's threads"
#endif

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "backward.h"

namespace precis {
namespace {

// Returns a dense last dimension, in fp32 or, if pairs are multiplied, in bf16 with rows of whole pairs.
Tensor readable(const Tensor& given, bool halves) {
  const Tensor x = halves ? given : given.to(at::kFloat);
  bool odd = x.stride(-1) != 1;
  for (int64_t i = 0; halves && i + 1 < x.dim(); ++i) odd = odd || x.stride(i) % 2 != 0;
  return odd || (halves && x.storage_offset() % 2 != 0) ? x.clone(at::MemoryFormat::Contiguous) : x;
}

Table packed_table(const Problem& p, const Tensor& given, bool learning) {
  Table found{readable(given, p.halves), {}, {}};
  const int64_t rows = up(p.table, kPanel);
  found.columns = at::empty({p.heads, rows * p.width}, at::kFloat);
  if (learning) found.rows = at::empty({p.heads, rows * p.wide()}, at::kFloat);
  at::parallel_for(0, p.heads, 1, [&](int64_t from, int64_t to) {
    for (int64_t h = from; h < to; ++h) {
      const Matrix x = p.given(found, h);
      pack_columns(x, 0, p.table, for_pair(found.columns, h));
      if (learning) p.pack(x, 0, p.table, rows, false, for_pair(found.rows, h));
    }
  });
  return found;
}

// Reads the list of table rows and extends its ends, so that squares over the edge read valid memory.
void read_places(Problem& p, const Tensor& places) {
  const int32_t* given = places.data_ptr<int32_t>();
  const int64_t count = places.numel();
  p.all_places.assign(kRows, given[0]);
  p.all_places.insert(p.all_places.end(), given, given + count);
  p.all_places.insert(p.all_places.end(), kRows, given[count - 1]);
  p.places = p.all_places.data() + kRows;
  p.gradual = true;
  for (int64_t i = 1; i < count; ++i) p.gradual = p.gradual && given[i - 1] - given[i] <= 1;
}

void read_valid(Problem& p, const std::optional<Tensor>& valid) {
  p.valid = valid ? valid->data_ptr<bool>() : nullptr;
  p.ends.assign(p.batch, p.length);
  for (int64_t b = 0; p.valid && b < p.batch; ++b)
    while (p.ends[b] > 1 && !p.valid[b * p.length + p.ends[b] - 1]) --p.ends[b];
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& c2p_table,
           const std::optional<Tensor>& p2c_table, const Tensor& places, const std::optional<Tensor>& valid) {
  TORCH_CHECK(q.dim() == 4 && q.sizes() == k.sizes() && q.sizes() == v.sizes(), "q, k and v: one shape (b h n e)");
  TORCH_CHECK(c2p_table || p2c_table, "one of the tables is needed");
  const int threads = at::get_num_threads();  // first: in a new thread this sets OpenMP's number
  TORCH_CHECK(omp_get_max_threads() == threads, "an OpenMP other than torch's is loaded");
  const int64_t rows = (c2p_table ? *c2p_table : *p2c_table).size(1);
  std::vector<Tensor> all{q, k, v};
  for (const auto& table : {c2p_table, p2c_table}) {
    if (!table) continue;
    TORCH_CHECK(table->sizes() == at::IntArrayRef({q.size(1), rows, q.size(3)}), "tables: one shape (h r e)");
    all.push_back(*table);
  }
  for (const Tensor& x : all)
    TORCH_CHECK((x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && x.is_cpu() &&
                    x.scalar_type() == q.scalar_type(), "all inputs: one type, fp32 or bf16, on the CPU");
  TORCH_CHECK(places.scalar_type() == at::kInt && places.is_contiguous() && places.numel() == 2 * q.size(2) - 1,
              "places: int32 of 2n - 1 distances");
  TORCH_CHECK(!valid || (valid->is_contiguous() && valid->scalar_type() == at::kBool &&
                         valid->sizes() == at::IntArrayRef({q.size(0), q.size(2)})),
              "valid: dense booleans (b n)");
}

Problem problem(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& c2p_table,
                const std::optional<Tensor>& p2c_table, const Tensor& places, const std::optional<Tensor>& valid,
                double scale, double dropout, int64_t seed, bool learning) {
  check(q, k, v, c2p_table, p2c_table, places, valid);
  Problem p;
  p.batch = q.size(0), p.heads = q.size(1), p.length = q.size(2), p.width = q.size(3);
  p.table = (c2p_table ? *c2p_table : *p2c_table).size(1);
  p.stride = up(p.table, kPanel) + kSkew;
  p.halves = q.scalar_type() == at::kBFloat16 && p.width % 2 == 0 && multiplies_pairs();
  p.q = readable(q, p.halves), p.k = readable(k, p.halves), p.v = readable(v, p.halves);
  if (c2p_table) p.c2p = packed_table(p, *c2p_table, learning);
  if (p2c_table) p.p2c = packed_table(p, *p2c_table, learning);
  read_places(p, places);
  read_valid(p, valid);
  p.scale = static_cast<float>(scale);
  p.dropout = {static_cast<uint64_t>(seed), static_cast<uint32_t>(std::min(dropout * 4294967296.0, 4294967295.0)),
               static_cast<float>(1.0 / (1.0 - dropout))};
  return p;
}

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const std::optional<Tensor>& c2p_table,
                                           const std::optional<Tensor>& p2c_table, const Tensor& places,
                                           const std::optional<Tensor>& valid, double scale, double dropout,
                                           int64_t seed, bool keep) {
  TORCH_CHECK(!keep || q.size(2) <= kKept, "weights are kept of ", kKept, " tokens at most");
  auto [out, sums, weights] =
      forward_pass(problem(q, k, v, c2p_table, p2c_table, places, valid, scale, dropout, seed, false), keep);
  return {out.to(q.scalar_type()), sums, weights};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& c2p_table,
    const std::optional<Tensor>& p2c_table, const Tensor& places, const std::optional<Tensor>& valid, double scale,
    double dropout, int64_t seed, const Tensor& given, const Tensor& out, const Tensor& sums, const Tensor& weights) {
  const Problem p = problem(q, k, v, c2p_table, p2c_table, places, valid, scale, dropout, seed, true);
  Gradients total = backward_pass(p, readable(given, p.halves), readable(out, p.halves), sums, weights);
  for (Tensor* table : {&total.c2p_table, &total.p2c_table})
    *table = table->defined() ? table->view({p.batch, p.heads, p.table, p.wide()}).sum(0).narrow(2, 0, p.width)
                              : at::empty({0}, at::kFloat);
  const auto type = q.scalar_type();
  return {total.q.to(type), total.k.to(type), total.v.to(type), total.c2p_table.to(type), total.p2c_table.to(type)};
}

}  // namespace
}  // namespace precis

TORCH_LIBRARY(precis_disentangled, m) {
  m.def("forward", &precis::forward);
  m.def("backward", &precis::backward);
}
