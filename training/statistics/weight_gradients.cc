#include <algorithm>

#include "parsimony/pruners/members.h"
#include "parsimony/training/statistics/gradients.h"
#include "parsimony/training/statistics/scatter_impl.h"

namespace parsimony::training {
namespace {

at::Tensor channels_of(const Member& member, int size) {
  at::Tensor channels = at::full({member.size}, size, at::kLong);
  for (int c = 0; c < size; ++c) {
    for (const int64_t i : member.of(c)) channels[i] = c;
  }
  return channels;
}

/// g·w, in double.
std::vector<at::Tensor> products_of(const std::vector<at::Tensor>& weights,
                                    const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> products;
  for (size_t i = 0; i < weights.size(); ++i) {
    products.push_back(gradients[i].defined() ? weights[i].detach().to(at::kDouble) * gradients[i]
                                              : at::Tensor());
  }
  return products;
}

}  // namespace

WeightGradients::WeightGradients(const Graph& graph, const Coupling& coupling,
                                 const std::map<std::string, at::Tensor>& weights,
                                 std::set<Measure> wanted)
    : wanted_(std::move(wanted)), parts_(coupling.groups.size()) {
  std::map<std::string, size_t> known;
  for (const GroupId g : parts_.ids()) {
    const Group& group = coupling.groups[g];
    for (auto* sums : {&magnitude_, &squares_, &hessian_}) {
      sums->push_back(at::zeros({group.size}, at::kDouble));
    }
    for (const Member* member : members_of(graph, group, Which::kProducing)) {
      const Weight& weight = graph.weight(graph.value(member->value).weight);
      const auto found = weights.find(weight.name);
      if (found == weights.end() || !found->second.requires_grad()) continue;
      const auto [place, is_new] = known.emplace(weight.name, weights_.size());
      if (is_new) weights_.push_back(found->second);
      parts_[g].push_back({place->second, member->axis, channels_of(*member, group.size)});
    }
  }
}

at::Tensor WeightGradients::sum(GroupId group, const std::vector<at::Tensor>& products) const {
  at::Tensor result = at::zeros_like(magnitude_[group]);
  for (const Part& part : parts_[group]) {
    const at::Tensor& product = products[part.weight];
    if (!product.defined()) continue;
    result += by_channel(sum_but(product, part.axis), part.channels, result.numel());
  }
  return result;
}

void WeightGradients::add_batch(const std::vector<at::Tensor>& gradients) {
  const auto products = products_of(weights_, gradients);
  for (const GroupId g : parts_.ids()) {
    const at::Tensor change = sum(g, products);
    magnitude_[g] += change.abs();
    squares_[g] += change.square();
  }
  ++batches_;
}

void WeightGradients::add_sample(const std::vector<at::Tensor>& gradients) {
  auto products = products_of(weights_, gradients);
  for (at::Tensor& product : products) {
    if (product.defined()) product = product.square();
  }
  for (const GroupId g : parts_.ids()) hessian_[g] += sum(g, products);
  ++samples_;
}

void WeightGradients::finish(Statistics& statistics) const {
  const auto write = [&](Measure measure, const PerGroup<at::Tensor>& sums, double factor) {
    if (!wanted_.contains(measure)) return;
    auto& groups = statistics.channels[measure];
    groups.assign(parts_.size(), {});
    for (const GroupId g : parts_.ids()) {
      if (!parts_[g].empty()) groups[g] = to_vector(sums[g] * factor);
    }
  };
  const double batches = 1.0 / static_cast<double>(std::max<int64_t>(1, batches_));
  write(Measure::kTaylor, magnitude_, batches);
  write(Measure::kTaylorSquared, squares_, batches);
  write(Measure::kHessian, hessian_, 0.5 / static_cast<double>(std::max<int64_t>(1, samples_)));
}

int64_t WeightGradients::bytes() const {
  int64_t bytes = 0;
  for (const auto* sums : {&magnitude_, &squares_, &hessian_}) {
    for (const at::Tensor& tensor : *sums) bytes += static_cast<int64_t>(tensor.nbytes());
  }
  for (const auto& parts : parts_) {
    for (const Part& part : parts) bytes += static_cast<int64_t>(part.channels.nbytes());
  }
  return bytes;
}

}  // namespace parsimony::training
