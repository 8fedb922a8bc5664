#include "tests/support/residual_network.h"

#include <random>
#include <string>
#include <vector>

#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

using Names = std::vector<std::string>;

class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  std::string weight(const std::string& dims, const std::string& kind = "") {
    weights_.push_back({"w" + std::to_string(weights_.size()), dims, kind});
    return weights_.back().name;
  }

  /// `op` may have attributes: "Softmax<axis=-1>".
  std::string node(const std::string& op, const Names& inputs, std::string output = "") {
    if (output.empty()) output = "v" + std::to_string(++values_);
    body_ += "  " + output + " = " + op + "(";
    for (size_t i = 0; i < inputs.size(); ++i) body_ += (i > 0 ? ", " : "") + inputs[i];
    body_ += ")\n";
    return output;
  }

  /// The sum, with the operands in either order.
  std::string add(const std::string& x, const std::string& branch) {
    return pick(2) == 0 ? node("Add", {x, branch}) : node("Add", {branch, x});
  }

  onnx::ModelProto finish(const std::string& head) const {
    onnx::ModelProto model = model_of(head + "\n{\n" + body_ + "}");
    for (const Weight& weight : weights_) {
      add_weight(model, weight.name, weight.dims, "float", weight.kind);
    }
    return model;
  }

 private:
  struct Weight {
    std::string name, dims, kind;
  };

  std::mt19937 random_;
  std::vector<Weight> weights_;
  std::string body_;
  int values_ = 0;
};

std::string by(int64_t a, int64_t b, int64_t k) {
  return std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(k) + "x" +
         std::to_string(k);
}

/// Of images [1, 3, 8, 8].
class Convolutional {
 public:
  explicit Convolutional(unsigned seed) : writer_(seed) {}

  ResidualNetwork make() {
    x_ = writer_.node("Relu", {conv("x", 3, width_, 3)});
    const int steps = 3 + writer_.pick(4);
    for (int i = 0; i < steps; ++i) step(writer_.pick(6));
    const std::string mean = writer_.node("GlobalAveragePool", {x_});
    const std::string flat = writer_.node("Flatten", {mean});
    writer_.node("MatMul", {flat, writer_.weight(std::to_string(width_) + "x5")}, "y");
    return {writer_.finish("net (float[1,3,8,8] x) => (float[1,5] y)"), blocks_};
  }

 private:
  void step(int kind) {
    blocks_ += kind < 4 ? 1 : 0;
    switch (kind) {
      case 0:
        x_ = writer_.node("Relu", {writer_.add(x_, two_convolutions())});
        return;
      case 1:
        x_ = writer_.add(x_, conv(writer_.node("Relu", {norm(x_)}), width_, width_, 3));
        return;
      case 2:
        x_ = writer_.add(x_, gated(conv(x_, width_, width_, 3)));
        return;
      case 3:
        x_ = writer_.add(x_, depthwise());
        return;
      case 4: {  // another width: neither operand comes from the other
        const std::string branch = two_convolutions();
        x_ = writer_.node("Relu", {writer_.add(conv(x_, width_, width_, 1), branch)});
        return;
      }
      default: {
        const int64_t next = 4 + 2 * writer_.pick(4);
        x_ = writer_.node("Relu", {conv(x_, width_, next, 3)});
        width_ = next;
      }
    }
  }

  std::string conv(const std::string& x, int64_t in, int64_t out, int k) {
    const std::string pads = k == 3 ? "Conv<pads=[1,1,1,1]>" : "Conv";
    return writer_.node(pads,
                        {x, writer_.weight(by(out, in, k)), writer_.weight(std::to_string(out))});
  }

  std::string norm(const std::string& x) {
    const std::string c = std::to_string(width_);
    return writer_.node("BatchNormalization", {x, writer_.weight(c), writer_.weight(c),
                                               writer_.weight(c), writer_.weight(c, "positive")});
  }

  std::string two_convolutions() {
    const int64_t inner = 3 + writer_.pick(5);
    return conv(writer_.node("Relu", {conv(x_, width_, inner, 3)}), inner, width_, 3);
  }

  std::string depthwise() {
    const int64_t wide = 2 * width_;
    const std::string a = writer_.node("Relu", {conv(x_, width_, wide, 1)});
    const std::string b =
        writer_.node("Conv<pads=[1,1,1,1], group=" + std::to_string(wide) + ">",
                     {a, writer_.weight(by(wide, 1, 3)), writer_.weight(std::to_string(wide))});
    return conv(b, wide, width_, 1);
  }

  std::string gated(const std::string& x) {
    const std::string mean = writer_.node("GlobalAveragePool", {x});
    const std::string gate = writer_.node("Sigmoid", {conv(mean, width_, width_, 1)});
    return writer_.node("Mul", {x, gate});
  }

  Writer writer_;
  std::string x_;
  int64_t width_ = 8;
  int blocks_ = 0;
};

/// Of tokens [2, 5, 6]; two heads of 4.
class Transformer {
 public:
  explicit Transformer(unsigned seed) : writer_(seed) {}

  ResidualNetwork make() {
    x_ = writer_.node("MatMul", {"x", writer_.weight("6x8")});
    const int layers = 1 + writer_.pick(3);
    for (int i = 0; i < layers; ++i) {
      x_ = writer_.add(x_, attention(norm(x_)));
      x_ = writer_.add(x_, mlp(norm(x_)));
    }
    writer_.node("MatMul", {norm(x_), writer_.weight("8x4")}, "y");
    return {
        writer_.finish("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                       "net (float[2,5,6] x) => (float[2,5,4] y)\n"
                       "<int64[4] hs = {0,0,2,-1}, int64[3] os = {0,0,-1}, float scale = {0.5}>"),
        2 * layers};
  }

 private:
  std::string norm(const std::string& x) {
    return writer_.node("LayerNormalization", {x, writer_.weight("8"), writer_.weight("8")});
  }

  std::string heads(const std::string& x, const char* perm) {
    const std::string all = writer_.node("MatMul", {x, writer_.weight("8x8")});
    return writer_.node(std::string("Transpose<perm=") + perm + ">",
                        {writer_.node("Reshape", {all, "hs"})});
  }

  std::string attention(const std::string& x) {
    const std::string q = writer_.node("Mul", {heads(x, "[0,2,1,3]"), "scale"});
    const std::string k = heads(x, "[0,2,3,1]");
    const std::string v = heads(x, "[0,2,1,3]");
    const std::string p = writer_.node("Softmax<axis=-1>", {writer_.node("MatMul", {q, k})});
    const std::string o =
        writer_.node("Transpose<perm=[0,2,1,3]>", {writer_.node("MatMul", {p, v})});
    return writer_.node("MatMul", {writer_.node("Reshape", {o, "os"}), writer_.weight("8x8")});
  }

  std::string mlp(const std::string& x) {
    const int wide = 6 + 2 * writer_.pick(5);
    const std::string w = std::to_string(wide);
    const std::string a = writer_.node("MatMul", {x, writer_.weight("8x" + w)});
    return writer_.node("MatMul", {writer_.node("Relu", {a}), writer_.weight(w + "x8")});
  }

  Writer writer_;
  std::string x_;
};

}  // namespace

ResidualNetwork residual_network(unsigned seed) {
  return seed % 2 == 0 ? Convolutional(seed).make() : Transformer(seed).make();
}

onnx::ModelProto three_blocks(const std::string& batch, int side, const std::string& stem,
                              int classes) {
  std::string body = "s = Conv<" + stem + ">(x, W0)\n r0 = Relu(s)\n";
  for (int i = 1; i <= 3; ++i) {
    const std::string n = std::to_string(i);
    const std::string before = "r" + std::to_string(i - 1);
    body += "a" + n + " = Conv<pads=[1,1,1,1]>(" + before + ", A" + n + ")\n b" + n + " = Relu(a" +
            n + ")\n c" + n + " = Conv<pads=[1,1,1,1]>(b" + n + ", C" + n + ")\n d" + n +
            " = Add(c" + n + ", " + before + ")\n r" + n + " = Relu(d" + n + ")\n";
  }
  const std::string sides = std::to_string(side) + "," + std::to_string(side);
  const std::string many = std::to_string(classes);
  onnx::ModelProto model = model_of(
      "net (float[" + batch + ",3," + sides + "] x) => (float[" + batch + "," + many + "] y)\n{" +
      body + "g = GlobalAveragePool(r3)\n f = Flatten(g)\n y = MatMul(f, W) }");
  add_weight(model, "W0", "8x3x3x3");
  add_weight(model, "W", "8x" + many);
  for (const char* n : {"1", "2", "3"}) {
    add_weight(model, std::string("A") + n, "8x8x3x3");
    add_weight(model, std::string("C") + n, "8x8x3x3");
  }
  return model;
}

}  // namespace parsimony::test
