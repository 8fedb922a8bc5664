#include "bench/support/pipeline.h"

#include "parsimony/api/prune.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::bench {

Passage prune(const std::string& in, const std::string& out, const Shorthand& what) {
  Passage passage;
  const Clock whole;
  onnx_io::ModelFile file(in);
  Graph graph = onnx_io::to_graph(file);
  const Clock between;
  passage.pruning = plan_pruning(graph, from_shorthand(what));
  onnx_io::OnnxEditor editor(file);
  apply_plan(passage.pruning.plan, graph, passage.pruning.analysis.probe, editor);
  passage.between_wall = between.wall();
  passage.between_cpu = between.cpu();
  file.write(out);
  passage.whole_cpu = whole.cpu();
  return passage;
}

}  // namespace parsimony::bench
