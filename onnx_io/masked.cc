#include "parsimony/onnx_io/masked.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/operators/operands.h"
#include "parsimony/graph/slice.h"
#include "parsimony/masks/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::onnx_io {
namespace {

using Bytes = std::vector<std::byte>;
/// Per element of a tensor, row-major: is it kept?
using Present = std::vector<uint8_t>;

/// Calls `act(first, count)` with all elements that are removed along the axis, in runs.
template <typename Act>
void for_each_gone(const Shape& dims, const PlanSlice& slice, const Act& act) {
  std::vector<bool> stays(slice.size, false);
  for (const int64_t k : slice.keep) stays[k] = true;
  int64_t inner = 1;
  for (size_t d = dims.size() - 1; std::cmp_greater(d, slice.axis); --d) inner *= dims[d];
  const int64_t count = element_count(dims);
  for (int64_t first = 0, k = 0; first < count; first += inner, k = (k + 1) % slice.size) {
    if (!stays[k]) act(first, inner);
  }
}

class Masking {
 public:
  Masking(ModelFile& file, const Plan& plan) : file_(file), plan_(plan), editor_(file) {}

  void run() {
    remove_blocks();
    if (plan_.constants == Constants::kExact) {
      read();
      for (const PlanMask& mask : plan_.masks) zero(mask);
      return;
    }
    replay(reference_changes(plan_), editor_);
    for (const PlanZeros& zeros : plan_.zeros) editor_.zero_smallest(zeros.tensor, zeros.smallest);
    read();
    for (const TensorUpdate& update : plan_.updates) updated_.insert(update.tensor);
    for (const PlanGroup& group : plan_.groups) {
      for (const PlanSlice& slice : group.slices) zero(slice);
    }
    for (const TensorUpdate& update : plan_.updates) assign(update);
    for (const auto& [name, bytes] : changed_) editor_.assign(name, bytes);
  }

 private:
  /// The branch of a removed block becomes zero.
  void remove_blocks() {
    if (plan_.blocks.empty()) return;
    const Graph graph = to_graph(file_);
    for (const PlanBlock& block : plan_.blocks) {
      const auto add = std::ranges::find_if(
          graph.nodes, [&](const Node& node) { return key_of(graph, node) == block.add; });
      if (add == graph.nodes.end()) throw parsimony::errors::not_in_model("node", block.add);
      const auto nothing = HostTensor::of(0, graph.value(add->outputs.front()).dtype);
      editor_.set_input(block.add, 1 - block.kept_input, nothing);
    }
  }

  void read() {
    graph_ = to_graph(file_);
    for (const WeightId w : graph_.weights.ids()) weights_.emplace(graph_.weights[w].name, w);
  }

  WeightId id_of(const std::string& tensor) const {
    const auto known = weights_.find(tensor);
    if (known == weights_.end()) throw parsimony::errors::not_in_model("tensor", tensor);
    return known->second;
  }

  Bytes& changed(const std::string& tensor) {
    const auto [place, is_new] = changed_.try_emplace(tensor);
    if (is_new) place->second = dense_bytes(graph_.weight(id_of(tensor)));
    return place->second;
  }

  void zero(const PlanMask& mask) {
    const Weight& weight = graph_.weight(id_of(mask.tensor));
    if (weight.dims != mask.dims || std::ssize(mask.keep) != weight.count()) {
      throw parsimony::errors::mask_does_not_fit(mask.tensor, mask.dims, weight.dims);
    }
    Bytes bytes = dense_bytes(weight);
    const int64_t size = size_of(weight.dtype);
    for (int64_t i = 0; i < weight.count(); ++i) {
      if (mask.keep[i] == 0) std::fill_n(bytes.begin() + i * size, size, std::byte{0});
    }
    editor_.assign(mask.tensor, bytes);
  }

  /// Slices of divisors are not zeroed: 0/0 would be undefined.
  void zero(const PlanSlice& slice) {
    const WeightId id = id_of(slice.tensor);
    const Weight& weight = graph_.weight(id);
    const AxisKeep axis{slice.axis, slice.size, slice.keep};
    check_slices(slice.tensor, weight.dims, {&axis, 1});
    if (updated_.contains(slice.tensor)) {
      auto& present = present_[slice.tensor];
      present.resize(weight.count(), 1);
      for_each_gone(weight.dims, slice, [&](int64_t first, int64_t count) {
        std::fill_n(present.begin() + first, count, uint8_t{0});
      });
    }
    if (slice.role == Role::kWith) return;
    Bytes& bytes = changed(slice.tensor);
    const int64_t size = size_of(weight.dtype);
    const Zeros zeros = size == 1 ? zeros_of(id) : Zeros();
    for_each_gone(weight.dims, slice, [&](int64_t first, int64_t count) {
      if (zeros.points.size() == 1) {
        std::fill_n(bytes.begin() + first * size, count * size, zeros.points.front());
        return;
      }
      for (int64_t i = first; i < first + count; ++i) bytes[i] = zeros.at(i);  // of one byte each
    });
  }

  /// Assigns the new values to the kept elements in order.
  void assign(const TensorUpdate& update) {
    if (update.values.empty()) return;
    const Weight& weight = graph_.weight(id_of(update.tensor));
    Present& present = present_[update.tensor];
    present.resize(weight.count(), 1);
    Bytes& bytes = changed(update.tensor);
    const int64_t size = size_of(weight.dtype);
    const int64_t wanted = std::ranges::count(present, 1) * size;
    if (std::ssize(update.values) != wanted) {
      throw parsimony::errors::wrong_bytes(update.tensor, wanted, std::ssize(update.values));
    }
    auto next = update.values.begin();
    for (int64_t i = 0; i < weight.count(); ++i) {
      if (present[i] == 0) continue;
      std::copy_n(next, size, bytes.begin() + i * size);
      next += size;
    }
  }

  /// The element that represents zero, for all elements or for each place along an axis.
  struct Zeros {
    Bytes points = {std::byte{0}};
    int64_t inner = 1;  ///< consecutive elements that share one
    std::byte at(int64_t i) const { return points[i / inner % std::ssize(points)]; }
  };

  /// For the tensor's readers. Codes that share an element have scales of their own, which are
  /// zero.
  Zeros zeros_of(WeightId id) const {
    for (const Value& value : graph_.values) {
      if (value.weight != id) continue;
      for (const Use& use : value.uses) {
        const Node& node = graph_.node(use.node);
        const int point = zero_point_of(node, use.input);
        if (point >= 0 && schema_of(node).integers.bits.empty()) {
          return zero_points(graph_.weight(id), node, use.input, point);
        }
      }
    }
    return {};
  }

  Zeros zero_points(const Weight& weight, const Node& node, int operand, int point) const {
    const Value& value = graph_.value(node.inputs[point]);
    if (value.weight == kNone) {
      throw UnsupportedError("tensor \"" + weight.name + "\": its zero point \"" + value.name +
                             "\" is computed");
    }
    Zeros zeros{dense_bytes(graph_.weight(value.weight)), 1};
    if (zeros.points.empty()) return {};
    if (std::ranges::adjacent_find(zeros.points, std::not_equal_to<>()) == zeros.points.end()) {
      zeros.points.resize(1);
      return zeros;
    }
    const auto axis = axis_along(node, operand, point, weight.dims.size());
    if (!axis || weight.dims[*axis] != std::ssize(zeros.points)) {
      throw UnsupportedError("tensor \"" + weight.name + "\" has zero points that differ by block");
    }
    for (size_t d = weight.dims.size() - 1; std::cmp_greater(d, *axis); --d) {
      zeros.inner *= weight.dims[d];
    }
    return zeros;
  }

  ModelFile& file_;
  const Plan& plan_;
  OnnxEditor editor_;
  Graph graph_;
  std::map<std::string, WeightId> weights_;
  std::set<std::string> updated_;
  std::map<std::string, Present> present_;  ///< of these
  std::map<std::string, Bytes> changed_;
};

}  // namespace

void mask(ModelFile& file, const Plan& plan) { Masking(file, plan).run(); }

}  // namespace parsimony::onnx_io
