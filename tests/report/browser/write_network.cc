// Writes a network of residual blocks to draw: write_network FILE BLOCKS [hostile]
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// Each block has five nodes: Conv, Relu, Conv, Add, Relu.
onnx::ModelProto residual_blocks(int blocks) {
  std::string nodes = "h0 = Conv<pads=[1,1,1,1]> (x, w)\n";
  for (int b = 0; b < blocks; ++b) {
    const std::string i = std::to_string(b);
    nodes += "a" + i + " = Conv<pads=[1,1,1,1]> (h" + i + ", u" + i + ")\n";
    nodes += "r" + i + " = Relu (a" + i + ")\n";
    nodes += "c" + i + " = Conv<pads=[1,1,1,1]> (r" + i + ", v" + i + ")\n";
    nodes += "s" + i + " = Add (h" + i + ", c" + i + ")\n";
    nodes += "h" + std::to_string(b + 1) + " = Relu (s" + i + ")\n";
  }
  const std::string last = std::to_string(blocks);
  onnx::ModelProto model =
      model_of("agraph (float[1, 3, 8, 8] x) => (float[1, 5] y) {\n" + nodes +
               "p = GlobalAveragePool (h" + last + ")\nf = Flatten (p)\ny = MatMul (f, fc)\n}");
  add_weight(model, "w", "8x3x3x3");
  for (int b = 0; b < blocks; ++b) {
    add_weight(model, "u" + std::to_string(b), "6x8x3x3");
    add_weight(model, "v" + std::to_string(b), "8x6x3x3");
  }
  add_weight(model, "fc", "8x5");
  return model;
}

/// Names that would harm who takes them for markup, or that are merely long.
void make_hostile(onnx::ModelProto& model) {
  const std::string names[] = {
      "</script><script>harmed = 1</script>",
      "<img src=x onerror=\"harmed = 1\">",
      "\"'&amp;<!-- \\u003c ${harmed = 1}",
      "javascript:harmed=1",
      "__proto__",
      std::string(3000, 'w'),
      "\xf0\x9f\x90\x9f \xe2\x80\xae"
      "elddim \x01\x7f\xff",
  };
  int i = 0;
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    node.set_name(names[i++ % std::size(names)]);
  }
}

}  // namespace
}  // namespace parsimony::test

int main(int argc, char** argv) {
  using namespace parsimony::test;
  if (argc < 3) return 2;
  onnx::ModelProto model = residual_blocks(std::atoi(argv[2]));
  if (argc > 3) make_hostile(model);
  std::ofstream out(argv[1], std::ios::binary);
  return model.SerializeToOstream(&out) ? 0 : 1;
}
