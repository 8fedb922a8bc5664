// The groups of every fixture as text, compared with tests/golden/groups/NAME.txt. After a change
// that is meant: PARSIMONY_UPDATE_GOLDEN=1 writes the files anew; read the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

constexpr char kFolder[] = PARSIMONY_SOURCE_DIR "/tests/golden/groups/";

/// "0-3" for a run, so that a flattened channel is short.
std::string runs_of(std::span<const int64_t> indices) {
  std::ostringstream text;
  for (size_t i = 0; i < indices.size();) {
    size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    if (i > 0) text << '+';
    text << indices[i];
    if (end - i > 1) text << '-' << indices[end - 1];
    i = end;
  }
  return text.str();
}

void print_group(const Graph& graph, const Group& group, std::ostream& out) {
  out << group.id << ": " << group.size << " channels by " << group.granularity;
  if (group.mixes) out << ", mixes at " << group.mixes_at;
  out << '\n';
  for (const Member& member : group.members) {
    out << "  " << graph.value(member.value).name << '[' << member.axis << "] "
        << name_of(member.role) << ':';
    for (int c = 0; c < group.size; ++c) out << ' ' << runs_of(member.of(c));
    out << '\n';
  }
}

std::string describe(const Fixture& fixture) {
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", fixture.model.SerializeAsString());
  const onnx_io::ModelFile file(folder / "model.onnx");
  Graph graph = onnx_io::to_graph(file);
  PruneOptions options;
  options.granularity = parse_granularity(fixture.granularity, fixture.name);
  for (const std::string& spec : fixture.inputs) options.inputs.push_back(parse_input_spec(spec));
  const Coupling coupling = analyse(graph, options).coupling;
  std::ostringstream out;
  for (const Group& group : coupling.groups) print_group(graph, group, out);
  for (const Obstacle& obstacle : coupling.obstacles) {
    out << graph.value(obstacle.value).name << '[' << obstacle.dim << "] keeps " << obstacle.pinned
        << ": " << obstacle.reason;
    if (obstacle.node != kNone) out << " (" << label_of(graph, graph.node(obstacle.node)) << ')';
    out << (obstacle.structural ? ", structural\n" : "\n");
  }
  return out.str();
}

bool updating() { return std::getenv("PARSIMONY_UPDATE_GOLDEN") != nullptr; }

TEST(Golden, GroupsOfEveryFixture) {
  for (const Fixture& fixture : all_fixtures()) {
    const std::string path = kFolder + fixture.name + ".txt";
    const std::string found = describe(fixture);
    if (updating()) {
      write_file(path, found);
    } else {
      ASSERT_TRUE(std::filesystem::exists(path)) << path;
      EXPECT_EQ(found, read_file(path)) << fixture.name;
    }
  }
}

TEST(Golden, NoGroupsWithoutAFixture) {
  if (std::getenv("PARSIMONY_FIXTURE") != nullptr) GTEST_SKIP() << "one fixture is selected";
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const auto name = entry.path().stem().string();
    const bool known = std::any_of(all_fixtures().begin(), all_fixtures().end(),
                                   [&](const Fixture& f) { return f.name == name; });
    EXPECT_TRUE(known) << entry.path();
  }
}

}  // namespace
}  // namespace parsimony::test
