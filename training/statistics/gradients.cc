#include "parsimony/training/statistics/gradients.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "parsimony/pruners/members.h"

namespace parsimony::training {
namespace {

// Mapping of a dimension's indices to the channels of a group.

/// Sums over all dimensions except one, in double. [size of the dimension]
at::Tensor sum_but(const at::Tensor& x, int64_t dim) {
  std::vector<int64_t> others;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != dim) others.push_back(i);
  }
  return others.empty() ? x.to(at::kDouble) : at::sum(x, others, false, at::kDouble);
}

/// Scatter-adds values [.., indices] to channels [.., size], in double, on the CPU; `channels` is
/// `size` for indices of other groups.
at::Tensor by_channel(const at::Tensor& values, const at::Tensor& channels, int64_t size) {
  std::vector<int64_t> dims = values.sizes().vec();
  dims.back() = size + 1;
  return at::zeros(dims, values.options())
      .index_add_(-1, channels.to(values.device()), values)
      .narrow(-1, 0, size)
      .cpu();
}

std::vector<double> to_vector(const at::Tensor& values) {
  const at::Tensor own = values.contiguous();
  return {own.data_ptr<double>(), own.data_ptr<double>() + own.numel()};
}

at::Tensor channels_of(const Member& member, int size) {
  at::Tensor channels = at::full({member.size}, size, at::kLong);
  for (int c = 0; c < size; ++c) {
    for (const int64_t i : member.of(c)) channels[i] = c;
  }
  return channels;
}

}  // namespace

Gated with_gates(const Graph& graph, const std::vector<Site>& sites) {
  static constexpr float kOne = 1;
  Gated gated{graph, {}};
  IdVector<NodeId, Node>& nodes = gated.graph.nodes;
  Weight one{"gate of one", DType::kFloat32, {}, reinterpret_cast<const std::byte*>(&kOne), 4};
  const ValueId factor = gated.graph.values.push_back(
      {.name = one.name, .dtype = DType::kFloat32, .weight = gated.graph.weights.push_back(one)});
  std::map<std::pair<NodeId, int>, ValueId> known;
  std::map<NodeId, std::vector<Node>> before;
  for (const Site& site : sites) {
    if (site.reader == kNone) {
      gated.gates.push_back(site.value);
      continue;
    }
    const auto [place, is_new] = known.emplace(std::pair{site.reader, site.input}, kNone);
    if (is_new) {
      const auto value = gated.graph.values.next_id();
      place->second = value;
      // This producer suffices while only its existence is checked.
      gated.graph.values.push_back(
          {.name = "gate " + std::to_string(value.number()), .producer = site.reader});
      Node gate;
      gate.op = "Mul";
      gate.body = nodes[site.reader].body;
      gate.opset = nodes[site.reader].opset;
      gate.inputs = {site.value, factor};
      gate.outputs = {value};
      before[site.reader].push_back(gate);
      nodes[site.reader].inputs[site.input] = value;
    }
    gated.gates.push_back(place->second);
  }
  IdVector<NodeId, Node> all;
  for (const NodeId n : nodes.ids()) {
    for (Node& gate : before[n]) all.push_back(std::move(gate));
    all.push_back(std::move(nodes[n]));
  }
  nodes = std::move(all);
  return gated;
}

GateGradients::GateGradients(const Coupling& coupling, const std::vector<Site>& sites,
                             std::vector<ValueId> gates)
    : reached_(coupling.groups.size()) {
  for (const Group& group : coupling.groups)
    squares_.push_back(at::zeros({group.size}, at::kDouble));
  for (size_t s = 0; s < sites.size(); ++s) {
    by_value_[gates[s]].push_back(s);
    gates_.push_back({sites[s].group, sites[s].dim, at::tensor(sites[s].channels, at::kLong)});
  }
}

void GateGradients::see(ValueId value, const at::Tensor& x, Seen& seen) const {
  const auto found = by_value_.find(value);
  if (found == by_value_.end() || !x.requires_grad()) return;
  for (const size_t gate : found->second) seen.emplace_back(gate, x);
}

std::optional<GateGradients::Changes> GateGradients::changes(const Seen& seen,
                                                             std::span<const at::Tensor> gradients,
                                                             int64_t count) const {
  Changes changes;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const auto& [number, x] = seen[i];
    const Gate& gate = gates_[number];
    if (count > 1 && (gate.dim == 0 || x.dim() <= gate.dim || x.size(0) != count)) return {};
    at::Tensor change = x.detach().to(at::kDouble) * gradients[i];
    if (count == 1) change = change.unsqueeze(0);
    const int64_t dim = gate.dim + (count == 1 ? 1 : 0);
    const at::Tensor sums = change.movedim(dim, 1).reshape({count, change.size(dim), -1}).sum(2);
    const at::Tensor part = by_channel(sums, gate.channels, squares_[gate.group].numel());
    const auto [place, is_new] = changes.emplace(gate.group, part);
    if (!is_new) place->second = place->second + part;
  }
  return changes;
}

void GateGradients::add(const Changes& changes, int64_t count) {
  for (const auto& [group, change] : changes) {
    squares_[group] += change.square().sum(0);
    reached_[group] = true;
  }
  samples_ += count;
}

void GateGradients::finish(Statistics& statistics) const {
  auto& groups = statistics.channels[Measure::kFisher];
  groups.assign(squares_.size(), {});
  for (const GroupId g : squares_.ids()) {
    if (reached_[g]) groups[g] = to_vector(squares_[g] / static_cast<double>(samples_));
  }
}

int64_t GateGradients::bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : squares_) bytes += static_cast<int64_t>(tensor.nbytes());
  for (const Gate& gate : gates_) bytes += static_cast<int64_t>(gate.channels.nbytes());
  return bytes;
}

WeightGradients::WeightGradients(const Graph& graph, const Coupling& coupling,
                                 const std::map<std::string, at::Tensor>& weights,
                                 std::set<Measure> requested)
    : requested_(std::move(requested)),
      parts_(coupling.groups.size()),
      reached_(coupling.groups.size()) {
  std::map<std::string, size_t> known;
  for (const GroupId g : parts_.ids()) {
    const Group& group = coupling.groups[g];
    for (auto* sums : {&magnitude_, &squares_, &hessian_}) {
      sums->push_back(at::zeros({group.size}, at::kDouble));
    }
    for (const Member* member : members_of(graph, group, Which::kProducing)) {
      const Weight& weight = graph.weight_of(member->value);
      const auto found = weights.find(weight.name);
      if (found == weights.end() || !found->second.requires_grad()) continue;
      const auto [place, is_new] = known.emplace(weight.name, weights_.size());
      if (is_new) weights_.push_back(found->second);
      parts_[g].push_back({place->second, member->axis, channels_of(*member, group.size)});
    }
  }
}

PerGroup<at::Tensor> WeightGradients::sums(const std::vector<at::Tensor>& gradients,
                                           int power) const {
  std::vector<at::Tensor> products;
  for (size_t i = 0; i < weights_.size(); ++i) {
    at::Tensor product;
    if (gradients[i].defined()) product = weights_[i].detach().to(at::kDouble) * gradients[i];
    if (product.defined() && power == 2) product = product.square_();
    products.push_back(std::move(product));
  }
  PerGroup<at::Tensor> sums;
  for (const GroupId g : parts_.ids()) {
    at::Tensor sum;
    for (const Part& part : parts_[g]) {
      const at::Tensor& product = products[part.weight];
      if (!product.defined()) continue;
      if (!sum.defined()) sum = at::zeros_like(magnitude_[g]);
      sum += by_channel(sum_but(product, part.axis), part.channels, sum.numel());
    }
    sums.push_back(std::move(sum));
  }
  return sums;
}

void WeightGradients::add_batch(const PerGroup<at::Tensor>& changes) {
  for (const GroupId g : parts_.ids()) {
    if (!changes[g].defined()) continue;
    reached_[g] = true;
    magnitude_[g] += changes[g].abs();
    squares_[g] += changes[g].square();
  }
  ++batches_;
}

void WeightGradients::add_sample(const PerGroup<at::Tensor>& squares) {
  for (const GroupId g : parts_.ids()) {
    if (!squares[g].defined()) continue;
    reached_[g] = true;
    hessian_[g] += squares[g];
  }
  ++samples_;
}

void WeightGradients::finish(Statistics& statistics) const {
  const auto write = [&](Measure measure, const PerGroup<at::Tensor>& sums, double factor) {
    if (!requested_.contains(measure)) return;
    auto& groups = statistics.channels[measure];
    groups.assign(parts_.size(), {});
    for (const GroupId g : parts_.ids()) {
      if (reached_[g]) groups[g] = to_vector(sums[g] * factor);
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
