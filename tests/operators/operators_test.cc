// Every rule has a fixture, and the analysis finds in each what its comment lines say.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/graph/rule.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/make_plan.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

bool is_an_end(const std::string& reason) {
  return reason.find("graph input \"") != std::string::npos ||
         reason.find("graph output \"") != std::string::npos;
}

/// What stays whole and is not expected, or is expected and does not.
std::string compare_whole(const Fixture& fixture, const std::vector<KeptWhole>& found) {
  std::string text;
  for (const KeptWhole& whole : found) {
    const bool listed =
        std::any_of(fixture.whole.begin(), fixture.whole.end(), [&](const Whole& w) {
          return w.axis == whole.axis && whole.reason.find(w.reason) != std::string::npos;
        });
    if (!listed && !is_an_end(whole.reason)) {
      text += "not expected: " + whole.axis + " " + whole.reason + "\n";
    }
  }
  for (const Whole& wanted : fixture.whole) {
    const bool there = std::any_of(found.begin(), found.end(), [&](const KeptWhole& whole) {
      return wanted.axis == whole.axis && whole.reason.find(wanted.reason) != std::string::npos;
    });
    if (!there) text += "expected: " + wanted.axis + " " + wanted.reason + "\n";
  }
  return text;
}

std::string join(const std::vector<int>& sizes) {
  std::string text;
  for (const int size : sizes) text += (text.empty() ? "" : " ") + std::to_string(size);
  return text;
}

void check(const Fixture& fixture) {
  ASSERT_TRUE(fixture.groups) << fixture.name << " does not say which groups there are";
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", fixture.model.SerializeAsString());
  const onnx_io::ModelFile file(folder / "model.onnx");
  Graph graph = onnx_io::to_graph(file);
  PruneOptions options;
  options.granularity = parse_granularity(fixture.granularity, fixture.name);
  for (const std::string& spec : fixture.inputs) options.inputs.push_back(parse_input_spec(spec));
  const Coupling coupling = analyse(graph, options).coupling;
  std::vector<int> sizes;
  std::vector<std::string> mixes;
  for (const Group& group : coupling.groups) {
    sizes.push_back(group.size);
    if (group.mixes) mixes.push_back(group.id);
  }
  EXPECT_EQ(join(sizes), join(*fixture.groups)) << fixture.name << ": groups";
  EXPECT_EQ(mixes, fixture.mixes) << fixture.name << ": mixing groups";
  EXPECT_EQ(compare_whole(fixture, kept_whole(graph, coupling)), "") << fixture.name;
}

TEST(Operators, GroupsAreAsEachFixtureSays) {
  ASSERT_FALSE(all_fixtures().empty());
  for (const Fixture& fixture : all_fixtures()) {
    try {
      check(fixture);
    } catch (const std::exception& error) {
      ADD_FAILURE() << fixture.name << ": " << error.what();
    }
  }
}

TEST(Operators, EveryRuleHasAFixture) {
  if (std::getenv("PARSIMONY_FIXTURE") != nullptr) GTEST_SKIP() << "one fixture is selected";
  std::set<std::pair<std::string, std::string>> used;
  for (const Fixture& fixture : all_fixtures()) {
    for (const auto& node : fixture.model.graph().node())
      used.emplace(node.domain(), node.op_type());
  }
  for (const Rule& rule : rule_table()) {
    EXPECT_TRUE(used.contains({std::string(rule.domain), std::string(rule.op)})) << rule.op;
  }
}

}  // namespace
}  // namespace parsimony::test
