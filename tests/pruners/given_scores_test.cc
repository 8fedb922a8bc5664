// Scores of channels from a file.
#include "parsimony/pruners/given_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/masks/tensor_file.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using test::Builder;
using test::group_of;
using test::member;

/// Reads vectors of the file that write() makes.
struct File {
  std::string path = testing::TempDir() + "scores.safetensors";

  void write(const std::string& name, const std::vector<float>& scores, Shape dims = {}) const {
    if (dims.empty()) dims = {std::ssize(scores)};
    write_tensors(path, {{name, DType::kFloat32, dims, std::as_bytes(std::span(scores))}});
  }
  ~File() { std::filesystem::remove(path); }
};

struct Network {
  Builder b;
  Group group;

  Network() {
    const ValueId x = b.input("x", {1, 2});
    const ValueId w1 = b.weight<float>("w1", {1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}, DType::kFloat32);
    const ValueId w2 = b.weight<float>("w2", {1, 2, 3, 4}, {4, 1}, DType::kFloat32);
    b.node("MatMul", {b.node("MatMul", {x, w1}, "first"), w2}, "second");
    group = group_of({member(w1, 0, 1, 4), member(w2, 1, 0, 4, Role::kIn)}, 4);
  }
};

TEST(GivenScores, AreSummedOverAxes) {
  const Network network;
  const File file;
  file.write("w1@1", {1, 2, 3, 4});
  GivenScores given = read_scores(file.path);
  check_scores(network.b.graph, given);
  EXPECT_EQ(given_scores(network.b.graph, network.group, given), (Scores{1, 2, 3, 4}));
  given[{"w2", 0}] = {10, 0, 0, 5};
  EXPECT_EQ(given_scores(network.b.graph, network.group, given), (Scores{11, 2, 3, 9}));
  EXPECT_TRUE(given_scores(network.b.graph, network.group, {}).empty());
}

TEST(GivenScores, SayWhatIsWrong) {
  const Network network;
  const File file;
  const auto error = [&] {
    try {
      check_scores(network.b.graph, read_scores(file.path));
    } catch (const Error& e) {
      const std::string text = e.what();
      return text.starts_with(file.path) ? text.substr(file.path.size()) : text;
    }
    return std::string("accepted");
  };
  file.write("w3@0", {1});
  EXPECT_EQ(error(), "scores: the network has no weight \"w3\"");
  file.write("w2@0", {1, 2});
  EXPECT_EQ(error(), "scores: found 2 for axis 0 of \"w2\", whose shape is [4, 1]");
  file.write("w2@2", {1, 2, 3, 4});
  EXPECT_EQ(error(), "scores: found 4 for axis 2 of \"w2\", whose shape is [4, 1]");
  file.write("w2", {1, 2, 3, 4});
  EXPECT_EQ(error(),
            ": found \"w2\", expected the name of a weight and an axis, as \"fc.weight@1\"");
  file.write("w2@0", {1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(error(), ": \"w2@0\" is no vector of floating-point numbers");
  file.write("w2@0", {1, 2, std::nanf(""), 4});
  EXPECT_EQ(error(), ": \"w2@0\" has a number that is not finite");
}

}  // namespace
}  // namespace parsimony
