// What the tool says of broken models, word for word: tests/api/error_texts.txt.
#include <gtest/gtest.h>

#include <sstream>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"
#include "tests/support/made.h"

namespace parsimony::test {
namespace {

struct Broken {
  const char* about;
  const char* text;
};

constexpr Broken kBroken[] = {
    {"an operand of other sizes",
     "net (float[2,6] x, float[3,8] z) => (float[2,8] y)\n"
     "<float[1,8] c = {1,2,3,4,5,6,7,8}>\n"
     "{ a = Add(z, c)\n y = MatMul(x, a) }"},
    {"broadcast that does not fit",
     "net (float[2,6] x, float[2,5] z) => (float[2,6] y)\n{ y = Add(x, z) }"},
    {"a reshape to more elements",
     "net (float[2,6] x) => (float[2,7] y)\n<int64[2] s = {2,7}>\n{ y = Reshape(x, s) }"},
    {"parts that do not add up",
     "net (float[2,6] x) => (float[2,3] y, float[2,2] z)\n<int64[2] s = {3,2}>\n"
     "{ y, z = Split<axis=1>(x, s) }"},
    {"parts that are not equal",
     "net (float[2,5] x) => (float[2,3] y, float[2,2] z)\n{ y, z = Split<axis=1>(x) }"},
    {"an axis beyond the rank",
     "net (float[2,6] x) => (float[2,6] y)\n{ y = Concat<axis=2>(x, x) }"},
    {"a concatenation of other shapes",
     "net (float[2,6] x, float[3,5] z) => (float[2,11] y)\n{ y = Concat<axis=1>(x, z) }"},
    {"a step of 0",
     "net (float[2,6] x) => (float[2,6] y)\n"
     "<int64[1] s = {0}, int64[1] e = {6}, int64[1] a = {1}, int64[1] t = {0}>\n"
     "{ y = Slice(x, s, e, a, t) }"},
    {"a squeezed dimension that is not 1",
     "net (float[2,6] x) => (float[6] y)\n<int64[1] a = {0}>\n{ y = Squeeze(x, a) }"},
    {"a kernel larger than its input",
     "net (float[1,1,2,2] x) => (float[1,1,1,1] y)\n"
     "{ y = MaxPool<kernel_shape=[3,3]>(x) }"},
    {"pads of another length",
     "net (float[2,6] x) => (float[2,8] y)\n<int64[2] p = {1,1}>\n{ y = Pad(x, p) }"},
    {"pads that crop all",
     "net (float[2,6] x) => (float[2,0] y)\n<int64[4] p = {0,-4,0,-4}>\n{ y = Pad(x, p) }"},
    {"a group of zero",
     "net (float[1,2,4,4] x, float[2,2,1,1] w) => (float[1,2,4,4] y)\n"
     "{ y = Conv<group=0>(x, w) }"},
    {"a kernel of other channels",
     "net (float[1,3,4,4] x, float[2,2,1,1] w) => (float[1,2,4,4] y)\n{ y = Conv(x, w) }"},
    {"a kernel of rank 1", "net (float[1,3] x, float[3] w) => (float[1,3] y)\n{ y = Conv(x, w) }"},
    {"groups that do not divide",
     "net (float[1,4,4,4] x, float[3,2,1,1] w) => (float[1,3,4,4] y)\n"
     "{ y = Conv<group=2>(x, w) }"},
    {"an equation that is none",
     "net (float[2,6] x) => (float[2] y)\n{ y = Einsum<equation=\"ij->(k\">(x) }"},
    {"a cycle", "net (float[2,6] x) => (float[2,6] y)\n{ a = Add(x, y)\n y = Relu(a) }"},
    {"an operand from nowhere", "net (float[2,6] x) => (float[2,6] y)\n{ y = Add(x, gone) }"},
};

std::string said_of(const Broken& broken) {
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", model_of(broken.text).SerializeAsString());
  try {
    const onnx_io::ModelFile file(folder / "model.onnx");
    Graph graph = onnx_io::to_graph(file);
    analyse(graph);
  } catch (const Error& error) {
    std::string text = error.what();
    if (const size_t at = text.find(folder / ""); at != std::string::npos) {
      text.erase(at, (folder / "").size());
    }
    return text;
  }
  return "(no error)";
}

TEST(ErrorTexts, OfBrokenModels) {
  std::ostringstream found;
  for (const Broken& broken : kBroken) found << broken.about << "\n    " << said_of(broken) << '\n';
  expect_made("tests/api/error_texts.txt", found.str());
}

}  // namespace
}  // namespace parsimony::test
