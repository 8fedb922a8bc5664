#include <c10/util/Exception.h>

#include <algorithm>

#include "parsimony/torch_io/executor/run_impl.h"

namespace parsimony::executor {
namespace {

constexpr int64_t kChunk = 1 << 20;  // elements: 4 MB of floats

/// [n rows] · [rows columns]. Rows that are absent count as zero.
at::Tensor product(const at::Tensor& x, const HeldWeight& weight) {
  const int64_t columns = weight.dims[1];
  const auto most = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, columns));
  const Ints rows = weight.present_rows();
  at::Tensor y = at::zeros({x.size(0), columns}, x.options());
  for (auto from = rows.begin(); from != rows.end();) {
    const auto to = from + std::min<int64_t>(most, rows.end() - from);
    const Ints some(from, to);
    y.addmm_(x.index_select(1, at::tensor(some)), weight.load_rows(some));
    from = to;
  }
  return y;
}

Tensors multiply(const std::vector<Call>& calls, const HeldWeight& weight) {
  Tensors each;
  Ints sizes;
  for (const Call& call : calls) {
    each.push_back(call.in(0).reshape({-1, weight.dims[0]}));
    sizes.push_back(each.back().size(0));
  }
  Tensors results = product(at::cat(each), weight).split_with_sizes(sizes);
  for (size_t i = 0; i < calls.size(); ++i) {
    Ints dims = calls[i].in(0).sizes().vec();
    dims.back() = weight.dims[1];
    results[i] = results[i].reshape(dims);
  }
  return results;
}

Tensors take_rows(const std::vector<Call>& calls, const HeldWeight& weight) {
  Tensors results;
  for (const Call& call : calls) {
    Ints rows = call.ints_in(1);
    for (int64_t& row : rows) {
      TORCH_CHECK(row >= -weight.dims[0] && row < weight.dims[0], "index ", row, " of ",
                  weight.dims[0]);
      if (row < 0) row += weight.dims[0];
    }
    Ints dims = call.in(1).sizes().vec();
    dims.push_back(weight.dims[1]);
    results.push_back(weight.load_rows(rows).reshape(dims));
  }
  return results;
}

}  // namespace

ValueId read_in_chunks(const Program& program, const Step& step) {
  if (!program.widens || step.op == nullptr || !step.op->domain.empty()) return kNone;
  const bool gathers = step.op->op == "Gather" && Call(step.node, {}).integer("axis", 0) == 0;
  if (!gathers && step.op->op != "MatMul") return kNone;
  const ValueId matrix = step.node.inputs.at(gathers ? 0 : 1);
  const ValueId other = step.node.inputs.at(gathers ? 1 : 0);
  const HeldWeight* held = program.held(matrix);
  const bool can = held != nullptr && held->comes_in_rows() && held->dims.size() == 2;
  return can && program.held(other) == nullptr ? matrix : kNone;
}

Tensors compute_in_chunks(const std::vector<Call>& calls, const HeldWeight& weight) {
  return calls.front().node.op == "Gather" ? take_rows(calls, weight) : multiply(calls, weight);
}

}  // namespace parsimony::executor
