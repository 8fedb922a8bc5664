#include <utility>

#include "parsimony/training/statistics/gradients.h"
#include "parsimony/training/statistics/scatter_impl.h"

namespace parsimony::training {

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
      // This producer will do for as long as nobody asks more than whether there is one.
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

void GateGradients::see(ValueId value, const at::Tensor& x) {
  const auto found = by_value_.find(value);
  if (found == by_value_.end() || !x.requires_grad()) return;
  for (const size_t gate : found->second) seen_.emplace_back(gate, x);
}

std::vector<at::Tensor> GateGradients::seen() const {
  std::vector<at::Tensor> tensors;
  for (const auto& [gate, x] : seen_) tensors.push_back(x);
  return tensors;
}

void GateGradients::add_sample(const std::vector<at::Tensor>& gradients) {
  std::map<GroupId, at::Tensor> of_group;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Gate& gate = gates_[seen_[i].first];
    const at::Tensor change = seen_[i].second.detach().to(at::kDouble) * gradients[i];
    const int64_t size = squares_[gate.group].numel();
    const at::Tensor part = by_channel(sum_but(change, gate.dim), gate.channels, size);
    const auto [place, is_new] = of_group.emplace(gate.group, part);
    if (!is_new) place->second = place->second + part;
  }
  for (const auto& [group, change] : of_group) {
    squares_[group] += change.square();
    reached_[group] = true;
  }
  seen_.clear();
  ++samples_;
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
  for (const auto& [gate, x] : seen_) bytes += static_cast<int64_t>(x.nbytes());
  return bytes;
}

}  // namespace parsimony::training
