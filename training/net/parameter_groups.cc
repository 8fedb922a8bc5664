#include "parsimony/training/net/parameter_groups.h"

#include <ATen/ATen.h>

#include <map>
#include <utility>

#include "parsimony/api/prune.h"
#include "parsimony/graph/weights.h"

namespace parsimony::training {
namespace {

ParameterSlices slices_of(const Graph& graph, const Member& member, int channels,
                          const NamedParameter& parameter) {
  std::vector<int64_t> owner(member.indices.size());
  for (int c = 0; c < channels; ++c) {
    const size_t first = member.offsets[c];
    for (size_t i = 0; i < member.of(c).size(); ++i) owner[first + i] = c;
  }
  return {parameter.first,
          parameter.second,
          member.axis,
          member.role,
          is_gain_of_statistics(graph.node(member.node), member.value),
          at::tensor(member.indices, at::kLong),
          at::tensor(owner, at::kLong)};
}

}  // namespace

void ParameterSlices::add_sums(const at::Tensor& values, at::Tensor& sums) const {
  std::vector<int64_t> others;
  for (int64_t d = 0; d < values.dim(); ++d) {
    if (d != axis) others.push_back(d);
  }
  const at::Tensor line = others.empty() ? values : values.sum(others);
  const at::Device device = values.device();
  sums.index_add_(0, channel.to(device),
                  line.index_select(0, index.to(device)).to(sums.scalar_type()));
}

at::Tensor ParameterSlices::along(const at::Tensor& per_channel) const {
  at::Tensor line = at::zeros({parameter.size(axis)}, per_channel.options());
  const at::Device device = per_channel.device();
  line.index_add_(0, index.to(device), per_channel.index_select(0, channel.to(device)));
  std::vector<int64_t> dims(parameter.dim(), 1);
  dims[axis] = -1;
  return line.view(dims);
}

std::vector<ParameterGroup> parameter_groups(Graph& graph, const std::vector<InputSpec>& inputs,
                                             Granularity granularity,
                                             const std::vector<NamedParameter>& parameters) {
  PruneRequest request;
  request.inputs = inputs;
  request.granularity = granularity;
  const Analysis analysis = analyse(graph, request);
  std::map<std::string, const NamedParameter*> by_name;
  for (const NamedParameter& parameter : parameters) by_name.emplace(parameter.first, &parameter);
  std::vector<ParameterGroup> groups;
  for (const Group& group : analysis.coupling.groups) {
    ParameterGroup own{group.size, {}};
    for (const Member& member : group.members) {
      const WeightId weight = graph.value(member.value).weight;
      if (weight == kNone || member.role == Role::kWith) continue;
      const auto found = by_name.find(graph.weight(weight).name);
      if (found == by_name.end()) continue;
      own.slices.push_back(slices_of(graph, member, group.size, *found->second));
    }
    if (!own.slices.empty()) groups.push_back(std::move(own));
  }
  return groups;
}

}  // namespace parsimony::training
