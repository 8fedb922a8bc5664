// Every rule has a fixture, and the analysis finds in each what stands below its line "---". After
// a change that is meant: PARSIMONY_UPDATE_FIXTURES=1 writes those sections again; read the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/masks/coupling_text.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

std::string found_in(const Fixture& fixture) {
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", fixture.model.SerializeAsString());
  const onnx_io::ModelFile file(folder / "model.onnx");
  Graph graph = onnx_io::to_graph(file);
  PruneRequest request;
  request.granularity = parse_granularity(fixture.granularity, fixture.name);
  for (const std::string& spec : fixture.inputs) request.inputs.push_back(parse_input_spec(spec));
  const Coupling coupling = analyse(graph, request).coupling;
  return text_of(graph, coupling);
}

TEST(Operators, GroupsAndConstraintsAreAsEachFixtureSays) {
  const bool update = std::getenv("PARSIMONY_UPDATE_FIXTURES") != nullptr;
  ASSERT_FALSE(all_fixtures().empty());
  for (const Fixture& fixture : all_fixtures()) {
    try {
      const std::string found = found_in(fixture);
      if (!update) {
        EXPECT_EQ(fixture.expected, found) << "in tests/operators/" << fixture.name << ".txt";
      } else if (fixture.expected != found) {
        update_fixture(fixture, found);
      }
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
      used.emplace(present_domain(node.domain()), node.op_type());
  }
  for (const OpSchema& rule : operator_table()) {
    if (!rule.is_followed()) continue;
    EXPECT_TRUE(used.contains({std::string(rule.domain), std::string(rule.op)})) << rule.op;
  }
}

}  // namespace
}  // namespace parsimony::test
