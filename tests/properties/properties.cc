#include "tests/properties/properties.h"

#include <algorithm>

#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::test {
namespace {

/// A field that no version of the format knows: number 2000, three bytes.
constexpr char kUnknownField[] = "\x82\x7d\x03xyz";

std::string named(const Workbench& bench, const ChannelId& channel) {
  const Group& group = bench.coupling().groups[channel.group];
  return group.id + " without channel " + std::to_string(channel.channel) + ": ";
}

PruneRequest request_for(const Workbench& bench, double ratio, const std::string& scope) {
  Shorthand shorthand;
  shorthand.ratio = ratio;
  shorthand.scope = scope;
  PruneRequest request = bench.request();
  request.config = from_shorthand(shorthand);
  return request;
}

Pruning prune_at(const Workbench& bench, double ratio, const std::string& scope) {
  Workbench fresh(bench.bytes(), bench.request());
  return plan_pruning(fresh.graph(), request_for(bench, ratio, scope));
}

/// A group's members as text: for each channel that stays, its indices as they are numbered once
/// what the masks remove is gone.
std::string renumbered(const Workbench& bench, GroupId g, const AxisMasks& masks) {
  const Group& group = bench.coupling().groups[g];
  std::string text;
  for (const Member& member : group.members) {
    const DimClassId line = bench.coupling().dim_class_of(member.value, member.axis);
    const auto channels = bench.coupling().channels(line);
    std::vector<int64_t> number;  // of each index among the channels that are kept
    for (const ChannelId& channel : channels) {
      const int64_t next = number.empty() ? 0 : number.back();
      number.push_back(next + (masks.keeps(channel) ? 1 : 0));
    }
    for (int c = 0; c < group.size; ++c) {
      if (masks.keep[g][c] == 0) continue;
      for (const int64_t i : member.of(c)) {
        text += std::to_string(number[i]) + " ";
      }
      text += "| ";
    }
  }
  return text;
}

/// The order in which fresh constants were added does not count.
std::string with_sorted_initializers(const std::string& bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return "not a model";
  auto& tensors = *model.mutable_graph()->mutable_initializer();
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return model.SerializeAsString();
}

bool same_groups(const Workbench& before, const AxisMasks& masks, const Workbench& after) {
  if (after.coupling().groups.size() != before.coupling().groups.size()) return false;
  const AxisMasks all = AxisMasks::all_kept(after.coupling());
  for (const GroupId g : before.coupling().groups.ids()) {
    if (renumbered(before, g, masks) != renumbered(after, g, all)) return false;
  }
  return true;
}

}  // namespace

std::string pruning_nothing(const Workbench& bench, bool) {
  const Plan plan = bench.plan(AxisMasks::all_kept(bench.coupling()));
  if (!plan.empty()) return "the plan is not empty";
  if (bench.apply(plan) != bench.bytes()) return "other bytes";
  if (!prune_at(bench, 0, "local").plan.empty()) return "the plan of ratio 0 is not empty";
  return "";
}

std::string prediction(const Workbench& bench, const AxisMasks& masks, bool libonnx) {
  const std::string small = bench.prune(masks);
  if (std::string text = shape_difference(bench, masks, small, libonnx); !text.empty()) return text;
  return misfit(small, bench.request(), libonnx);
}

std::string any_one_channel(const Workbench& bench, bool libonnx) {
  for (const GroupId g : bench.coupling().groups.ids()) {
    for (int c = 0; c < bench.coupling().groups[g].size; ++c) {
      const ChannelId channel{g, c};
      const AxisMasks masks = without(bench.coupling(), {channel});
      if (!removes(masks)) continue;
      const std::string failure = prediction(bench, masks, libonnx);
      if (!failure.empty()) return named(bench, channel) + failure;
    }
  }
  return "";
}

std::string slicing_twice(const Workbench& bench, bool) {
  std::vector<ChannelId> first;
  std::vector<ChannelId> both;
  std::vector<ChannelId> second;  // numbered as the groups are after the first
  for (const GroupId g : bench.coupling().groups.ids()) {
    const Group& group = bench.coupling().groups[g];
    if (group.size < 4 || !group.branches.empty()) continue;  // groups leave with branches
    first.push_back({g, 1});
    second.push_back({g, 1});
    both.push_back({g, 1});
    both.push_back({g, 2});
  }
  const AxisMasks masks = without(bench.coupling(), first);
  const Workbench half(bench.prune(masks), bench.request());
  const AxisMasks union_masks = without(bench.coupling(), both);
  for (const ChannelId& channel : both) {
    if (union_masks.keeps(channel)) return kOtherGroups;  // the last of a dimension came back
  }
  if (!same_groups(bench, masks, half)) return kOtherGroups;
  const std::string twice = half.prune(without(half.coupling(), second));
  const std::string once = bench.prune(union_masks);
  return with_sorted_initializers(twice) == with_sorted_initializers(once) ? "" : "other bytes";
}

std::string monotone_cost(const Workbench& bench, bool) {
  for (const std::string scope : {"local", "global"}) {
    Cost before = prune_at(bench, 0, scope).dense;
    for (const double ratio : {0.1, 0.3, 0.5, 0.7, 0.9}) {
      const Cost now = prune_at(bench, ratio, scope).small;
      if (now.params > before.params || now.macs > before.macs) {
        return scope + " " + std::to_string(ratio) + " costs more";
      }
      before = now;
    }
  }
  return "";
}

std::string lossless(const Workbench& bench, bool) {
  const TemporaryFolder folder;
  const std::string bytes = bench.bytes() + kUnknownField;
  write_file(folder / "a.onnx", bytes);
  onnx_io::ModelFile file(folder / "a.onnx");
  const Graph graph = onnx_io::to_graph(file);
  onnx_io::OnnxEditor editor(file);
  file.write(folder / "b.onnx");
  return read_file(folder / "b.onnx") == bytes ? "" : "other bytes";
}

std::string replayed(const Workbench& bench, bool) {
  const Pruning pruning = prune_at(bench, 0.5, "local");
  const std::string json = pruning.plan.to_json();
  const Plan again = Plan::from_json(json, "plan.json");
  if (again.to_json() != json) return "the plan reads differently";
  if (!(again == pruning.plan)) return "the plan is another one after reading";
  return bench.apply(pruning.plan) == bench.apply(again) ? "" : "other bytes";
}

std::string shuffled(const Workbench& bench, unsigned seed, bool libonnx) {
  CouplingOptions options;
  options.shuffle_seed = seed;
  const Workbench other(bench.bytes(), bench.request(), options);
  const std::string failure = prediction(other, random_masks(other.coupling(), 0.5, seed), libonnx);
  if (!failure.empty()) return "order " + std::to_string(seed) + ": " + failure;
  return seed > 2 ? "" : any_one_channel(other, libonnx);
}

}  // namespace parsimony::test
