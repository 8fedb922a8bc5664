// Writes pruned models and their plans into a folder, for tools/ort_compare.py to judge.
//
//   write_models fixtures FOLDER        every operator fixture: half of each group, and one channel
//                                       of one group; where scales are frozen, rescaled as well
//   write_models random FOLDER COUNT    random networks
//   write_models blocks FOLDER COUNT    random residual networks that lose blocks and channels
//   write_models models FOLDER MODELS SPECS   the files in MODELS at 50 % local and 30 % global
//
// FOLDER/list.tsv has one row each: original, small, plan, inputs.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/scales.h"
#include "tests/properties/random_network.h"
#include "tests/properties/workbench.h"
#include "tests/support/residual_network.h"

namespace parsimony::test {
namespace fs = std::filesystem;
namespace {

std::string join(const std::vector<std::string>& specs) {
  std::string text;
  for (const std::string& spec : specs) text += (text.empty() ? "" : " ") + spec;
  return text;
}

class Set {
 public:
  explicit Set(const fs::path& folder) : folder_(folder) {
    fs::create_directories(folder);
    list_.open(folder / "list.tsv");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void row(const std::string& original, const std::string& name, const Plan& plan,
           const std::string& specs) {
    plan.save(path(name + ".json"));
    list_ << original << '\t' << path(name + ".onnx") << '\t' << path(name + ".json");
    if (!specs.empty()) list_ << '\t' << specs;
    list_ << '\n';
    ++rows_;
  }

  int rows() const { return rows_; }

 private:
  fs::path folder_;
  std::ofstream list_;
  int rows_ = 0;
};

void add(Set& set, const Workbench& bench, const std::string& original, const std::string& name,
         const AxisMasks& masks, const std::string& specs) {
  Plan plan = bench.plan(masks);
  if (plan.empty()) return;
  const auto judge = [&](const std::string& small) {
    write_file(set.path(small + ".onnx"), bench.apply(plan));
    set.row(set.path(original + ".onnx"), small, plan, specs);
  };
  judge(name);
  const auto scales = frozen_scales(bench.graph(), bench.facts(), bench.coupling(), masks, plan);
  if (scales.empty()) return;
  rescale(bench.graph(), scales, plan);
  judge(name + ".rescaled");
}

void add_all(Set& set, const Workbench& bench, const std::string& name, const std::string& specs) {
  write_file(set.path(name + ".onnx"), bench.bytes());
  add(set, bench, name, name + ".half", random_masks(bench.coupling(), 0.5, 1), specs);
  for (const GroupId g : bench.coupling().groups.ids()) {
    const Group& group = bench.coupling().groups[g];
    for (const int channel : {0, group.size - 1}) {
      add(set, bench, name, name + "." + group.id + "." + std::to_string(channel),
          without(bench.coupling(), {{g, channel}}), specs);
    }
  }
}

void write_fixtures(Set& set) {
  for (const Fixture& fixture : all_fixtures()) {
    if (fixture.onnxruntime) add_all(set, Workbench(fixture), fixture.name, join(fixture.inputs));
  }
}

void write_random(Set& set, unsigned count) {
  for (unsigned seed = 1; seed <= count; ++seed) {
    add_all(set, Workbench(random_network(seed)), "random" + std::to_string(seed), "");
  }
}

void write_blocks(Set& set, unsigned count) {
  for (unsigned seed = 0; seed < count; ++seed) {
    const ResidualNetwork random = residual_network(seed);
    const std::string name = "residual" + std::to_string(seed);
    const Workbench bench(random.model);
    write_file(set.path(name + ".onnx"), bench.bytes());
    // Without channels first: a LayerNormalization that loses some has no exact reference.
    for (const double ratio : {0.0, 0.34}) {
      const std::string small = name + (ratio > 0 ? ".both" : ".blocks");
      const Plan plan = plan_random_depth(bench.graph(), seed, random.blocks, ratio).pruning.plan;
      if (plan.empty()) continue;
      write_file(set.path(small + ".onnx"), bench.apply(plan));
      set.row(set.path(name + ".onnx"), small, plan, "");
    }
  }
}

std::string specs_of(const std::string& table, const std::string& file) {
  std::ifstream in(table);
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    if (line.substr(0, tab) == file && tab != std::string::npos) return line.substr(tab + 1);
  }
  return "";
}

void write_model(Set& set, const fs::path& path, const std::string& specs, const std::string& scope,
                 double ratio) {
  onnx_io::ModelFile file(path.string());
  Graph graph = onnx_io::to_graph(file);
  PruneRequest request;
  std::istringstream in(specs.substr(0, specs.find('\t')));  // behind it: a distribution
  for (std::string spec; in >> spec;) request.inputs.push_back(parse_input_spec(spec));
  Shorthand shorthand;
  shorthand.ratio = ratio;
  shorthand.scope = scope;
  request.config = from_shorthand(shorthand);
  Pruning pruning = plan_pruning(graph, request);
  pruning.plan.sha256 = file.sha256();
  onnx_io::OnnxEditor editor(file);
  apply_plan(pruning.plan, graph, pruning.analysis.probe, editor);
  const std::string name = path.stem().string() + "." + scope;
  file.write(set.path(name + ".onnx"));
  set.row(path.string(), name, pruning.plan, specs);
}

void write_models(Set& set, const fs::path& models, const std::string& table) {
  for (const auto& entry : fs::directory_iterator(models)) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string specs = specs_of(table, entry.path().filename().string());
    write_model(set, entry.path(), specs, "local", 0.5);
    write_model(set, entry.path(), specs, "global", 0.3);
  }
}

int run(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments[0];
  if (arguments.size() < 2)
    throw ConfigError("usage: write_models fixtures|random|blocks|models FOLDER …");
  Set set(arguments[1]);
  if (what == "fixtures") {
    write_fixtures(set);
  } else if (what == "random" && arguments.size() == 3) {
    write_random(set, static_cast<unsigned>(std::stoul(arguments[2])));
  } else if (what == "blocks" && arguments.size() == 3) {
    write_blocks(set, static_cast<unsigned>(std::stoul(arguments[2])));
  } else if (what == "models" && arguments.size() == 4) {
    write_models(set, arguments[2], arguments[3]);
  } else {
    throw ConfigError("write_models: nothing known about \"" + what + "\"");
  }
  std::cerr << set.rows() << " pruned models\n";
  return set.rows() > 0 ? 0 : 1;
}

}  // namespace
}  // namespace parsimony::test

int main(int argc, char** argv) {
  try {
    return parsimony::test::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "write_models: " << error.what() << "\n";
    return 2;
  }
}
