#include <algorithm>
#include <map>
#include <optional>

#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/optimizer_impl.h"

namespace parsimony::checkpoints {
namespace {

constexpr std::string_view kState = "state";
constexpr std::string_view kGroups = "param_groups";

using Path = std::vector<std::string>;

Path first(const Path& path, size_t count) {
  return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// "0.weight" and "exp_avg" of "state.0.weight.exp_avg", as torch.distributed.checkpoint flattens
/// states.
std::optional<std::pair<std::string, std::string>> flat_state(const std::string& key) {
  const size_t end = key.rfind('.');
  if (!key.starts_with("state.") || end <= kState.size()) return std::nullopt;
  const size_t begin = kState.size() + 1;
  return std::pair(key.substr(begin, end - begin), key.substr(end + 1));
}

bool is_number(const std::string& key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<ParameterStates> optimizers_of(const Checkpoint& checkpoint) {
  std::map<Path, ParameterStates> optimizers;
  std::map<Path, std::vector<std::pair<int64_t, TensorId>>> lists;
  Path path;
  for (const CheckpointLine& line : checkpoint.tree()) {
    if (line.depth == 0) {  // the root, or a format that has none
      path.clear();
      continue;
    }
    path.resize(line.depth - 1);
    path.push_back(line.key);
    const size_t depth = path.size();
    if (line.tensor != TensorId()) {
      // OPTIMIZER/state/PARAMETER/WHAT; the parameter's name may hold anything but is one key.
      if (depth >= 3 && path[depth - 3] == kState) {
        optimizers[first(path, depth - 3)].states.push_back({line.tensor, path[depth - 2]});
      } else if (const auto flat = flat_state(line.key)) {
        ParameterStates& optimizer = optimizers[first(path, depth - 1)];
        optimizer.states.push_back({line.tensor, flat->first});
        if (!contains(optimizer.order, flat->first)) optimizer.order.push_back(flat->first);
      } else if (is_number(line.key)) {
        lists[first(path, depth - 1)].emplace_back(std::stoll(line.key), line.tensor);
      }
      continue;
    }
    // OPTIMIZER/param_groups/GROUP/params/I
    if (depth < 4 || path[depth - 4] != kGroups) continue;
    ParameterStates& optimizer = optimizers[first(path, depth - 4)];
    if (path[depth - 2] == "params") {
      optimizer.order.push_back(line.what);
      // Their numbers begin anew in each group.
      if (line.key == "0") optimizer.groups.push_back(0);
      if (!optimizer.groups.empty()) ++optimizer.groups.back();
    }
    if (path[depth - 2] == "param_names") optimizer.names.push_back(line.what);
  }
  std::vector<ParameterStates> found;
  const auto joined = [](const Path& keys) { return to_string(keys); };
  for (auto& [at, optimizer] : optimizers) {
    optimizer.path = joined(at);
    if (!optimizer.states.empty() && !optimizer.order.empty())
      found.push_back(std::move(optimizer));
  }
  for (const auto& [at, items] : lists) {
    ParameterStates list;
    list.path = joined(at);
    list.groups = {items.size()};
    list.is_list = true;
    for (const auto& [number, tensor] : items) {
      list.order.push_back(std::to_string(number));
      list.states.push_back({tensor, list.order.back()});
    }
    found.push_back(std::move(list));
  }
  return found;
}

}  // namespace parsimony::checkpoints
