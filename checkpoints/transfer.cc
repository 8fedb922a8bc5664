#include "parsimony/checkpoints/transfer.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/composed_impl.h"

namespace parsimony {
namespace {

using checkpoints::bytes_of;
using checkpoints::Numbers;

/// @throws UnsupportedError unless the tensor's elements can become `dtype`
void check_floating(const StoredTensor& stored, DType dtype) {
  if (stored.type->dtype == dtype) return;
  if (is_floating(stored.type->dtype) && is_floating(dtype)) return;
  throw UnsupportedError("tensor ", in_quotes(to_string(stored.path)), " is of ", stored.type->name,
                         ", expected ", name_of(dtype));
}

class Transferrer {
 public:
  Transferrer(const Graph& graph, const CheckpointMatch& match, const Checkpoint& checkpoint,
              const TransferOptions& options)
      : graph_(graph),
        match_(match),
        checkpoint_(checkpoint),
        names_(checkpoint),
        dependents_(checkpoint, names_),
        options_(options) {
    for (const WeightMatch& weight : match.weights) by_weight_.emplace(weight.weight, &weight);
  }

  TransferredWeights run() {
    for (const Weight& weight : graph_.weights) {
      const auto found = by_weight_.find(weight.name);
      if (found != by_weight_.end()) {
        const std::string why = why_unfit(weight, *found->second);
        if (why.empty()) {
          update(weight, *found->second);
        } else {
          leave(weight, why);
        }
      } else if (is_floating(weight.dtype) && weight.count() > 1) {
        const auto why = match_.unmatched.find(weight.name);
        leave(weight, why == match_.unmatched.end() ? "no tensor has its name or its elements"
                                                    : why->second);
      }
    }
    return std::move(result_);
  }

 private:
  void leave(const Weight& weight, const std::string& why) {
    result_.left.push_back(weight.name + ": " + why);
  }

  TensorId find(const std::string& name) const {
    return names_.find(match_.copies.front().prefix + name);
  }

  const StoredTensor& tensor(TensorId id) const { return checkpoint_.tensors()[id]; }

  /// Why the weight cannot be made of the tensors that it was matched with, in this checkpoint or
  /// another; empty if it can.
  std::string why_unfit(const Weight& weight, const WeightMatch& match) const {
    for (const MatchTarget& target : match.targets) {
      const TensorId id = find(target.name);
      // A tensor that hangs on the weight is used as it lies in this checkpoint, if it is there.
      if (match.normalisation.empty() && !target.what.empty()) continue;
      if (id == TensorId()) return "the checkpoint has no tensor " + in_quotes(target.name);
      Shape expected = tensor(id).dims;
      for (size_t axis = 0; axis < target.axes.size(); ++axis) {
        if (target.axes[axis] < 0) continue;
        expected.at(target.axes[axis]) = weight.dims[axis] * target.block;
      }
      if (tensor(id).dims != expected) {
        return "tensor " + in_quotes(target.name) + " has shape " + to_string(tensor(id).dims) +
               ", the weight " + to_string(weight.dims);
      }
    }
    return why_not_composed(match);
  }

  /// Why the weight cannot be computed of what lies beside it; empty if it can.
  std::string why_not_composed(const WeightMatch& match) const {
    const std::string& weight = dependents_.weight_of(find(match.targets.front().name));
    for (const Dependent& dependent : dependents_.of(weight)) {
      const bool is_factor =
          dependent.part == DependentPart::kDown || dependent.part == DependentPart::kUp;
      if (!is_factor || is_own_weight(dependent.tensor)) continue;
      return "the scale of " + in_quotes(to_string(tensor(dependent.tensor).path)) +
             ", which is added to it, is not in the checkpoint: merge it";
    }
    return {};
  }

  /// Is the tensor a weight that the network reads itself?
  bool is_own_weight(TensorId id) const {
    return std::ranges::any_of(match_.weights, [&](const WeightMatch& other) {
      return find(other.targets.front().name) == id;
    });
  }

  Numbers numbers(TensorId id) const {
    return checkpoints::numbers_of(checkpoints::as_weight(tensor(id), checkpoint_.values(id)));
  }

  Numbers vector_of(const std::string& name, size_t size, double otherwise) const {
    const TensorId id = find(name);
    return id == TensorId() ? Numbers(size, otherwise) : numbers(id);
  }

  void update(const Weight& weight, const WeightMatch& match) {
    TensorUpdate made{.tensor = weight.name, .reason = "the checkpoint's"};
    made.dtype = weight.dtype;
    made.dims = weight.dims;
    const TensorId id = find(match.targets.front().name);
    if (!match.normalisation.empty()) {
      made.values = bytes_of(folded(weight, match), weight.dtype);
    } else {
      made.values = stored_values(weight, match, id);
    }
    result_.updates.push_back(std::move(made));
  }

  /// The elements as they lie there, composed, or transposed.
  std::vector<std::byte> stored_values(const Weight& weight, const WeightMatch& match,
                                       TensorId id) const {
    const std::vector<int>& axes = match.targets.front().axes;
    const bool as_it_lies = axes.size() != 2 || axes[0] < axes[1];
    const auto composition = checkpoints::composition_of(match, match_.copies.front().prefix,
                                                         names_, dependents_, checkpoint_);
    if (composition.is_plain() && as_it_lies) return values_as(checkpoint_, id, weight.dtype);
    check_floating(tensor(id), weight.dtype);
    const Numbers numbers = checkpoints::composed(composition, checkpoint_);
    return bytes_of(as_it_lies ? numbers : checkpoints::transposed(numbers, tensor(id).dims),
                    weight.dtype);
  }

  /// Per channel: γ / √(σ² + ε).
  Numbers factors(const WeightMatch& match, size_t channels) {
    const Numbers gain = vector_of(match.normalisation + ".weight", channels, 1);
    const Numbers variance = vector_of(match.normalisation + ".running_var", channels, 1);
    result_.assumed_epsilon |= !match.epsilon.has_value();
    const double epsilon = match.epsilon.value_or(options_.epsilon);
    Numbers result(channels);
    for (size_t c = 0; c < channels; ++c) result[c] = gain[c] / std::sqrt(variance[c] + epsilon);
    return result;
  }

  Numbers folded(const Weight& weight, const WeightMatch& match) {
    const std::string own = match.normalisation + ".";
    if (match.targets.front().name.starts_with(own)) return folded_bias(match, weight.dims[0]);
    // The normalisation has one axis: that of the layer's outputs.
    const MatchTarget& along = match.targets[1];
    const auto out = std::ranges::find(along.axes, 0) - along.axes.begin();
    Numbers result = numbers(find(match.targets.front().name));
    const Numbers scale = factors(match, weight.dims[out]);
    int64_t inner = 1;
    for (size_t d = out + 1; d < weight.dims.size(); ++d) inner *= weight.dims[d];
    const int64_t channels = weight.dims[out];
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] *= scale[static_cast<int64_t>(i) / inner % channels];
    }
    return result;
  }

  /// β + (b - μ) · γ / √(σ² + ε), where b is the layer's own bias.
  Numbers folded_bias(const WeightMatch& match, int64_t channels) {
    const std::string own = match.normalisation + ".";
    const Numbers scale = factors(match, channels);
    const Numbers shift = vector_of(own + "bias", channels, 0);
    const Numbers mean = vector_of(own + "running_mean", channels, 0);
    Numbers bias(channels, 0);
    for (const MatchTarget& target : match.targets) {
      if (!target.name.starts_with(own)) bias = numbers(find(target.name));
    }
    for (int64_t c = 0; c < channels; ++c) bias[c] = shift[c] + (bias[c] - mean[c]) * scale[c];
    return bias;
  }

  const Graph& graph_;
  const CheckpointMatch& match_;
  const Checkpoint& checkpoint_;
  TensorNames names_;
  Dependents dependents_;
  TransferOptions options_;
  std::map<std::string, const WeightMatch*, std::less<>> by_weight_;
  TransferredWeights result_;
};

}  // namespace

std::vector<std::byte> values_as(const Checkpoint& checkpoint, TensorId tensor, DType dtype) {
  const StoredTensor& stored = checkpoint.tensors()[tensor];
  const StoredValues values = checkpoint.values(tensor);
  if (stored.type->dtype == dtype) return {values.bytes().begin(), values.bytes().end()};
  check_floating(stored, dtype);
  return bytes_of(checkpoints::numbers_of(checkpoints::as_weight(stored, values)), dtype);
}

std::vector<std::byte> weight_as(const Checkpoint& checkpoint, const Dependents& dependents,
                                 TensorId tensor, DType dtype) {
  const auto composition = checkpoints::composition_of(tensor, dependents, checkpoint);
  if (composition.is_plain()) return values_as(checkpoint, tensor, dtype);
  check_floating(checkpoint.tensors()[tensor], dtype);
  return bytes_of(checkpoints::composed(composition, checkpoint), dtype);
}

TransferredWeights transfer(const Graph& graph, const CheckpointMatch& match,
                            const Checkpoint& checkpoint, const TransferOptions& options) {
  check_has_copy(match);
  return Transferrer(graph, match, checkpoint, options).run();
}

}  // namespace parsimony
