#include "parsimony/torch_io/script/read.h"

#include <torch/csrc/jit/passes/inliner.h>

#include "parsimony/torch_io/script/beside_forward_impl.h"
#include "parsimony/torch_io/script/errors_impl.h"
#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io {

namespace jit = torch::jit;

ScriptGraph read_script(const jit::Module& module, const std::vector<InputSpec>& inputs) {
  if (!module.find_method("forward")) throw script::errors::no_forward();
  ScriptGraph result;
  result.origins = std::make_shared<script::Origins>();
  script::Origins& origins = *result.origins;
  try {
    origins.module = module.clone(/*inplace=*/true);  // the tensors are shared
    origins.graph = origins.module.get_method("forward").graph();
    for (const std::string& method : script::uncalled_methods(origins.module)) {
      result.graph.notes.push_back("method \"" + method +
                                   "\" is not followed, for forward does not call it: it may not "
                                   "run with what is smaller");
    }
    jit::Inline(*origins.graph);
    script::Interpreter interpreter(result.graph, origins);
    interpreter.run(inputs);
    result.results = interpreter.result_names();
    result.numbers = interpreter.result_numbers();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // libtorch has several kinds
    throw script::errors::cannot_read(script::first_line(error));
  }
  return result;
}

bool is_made_up(const ScriptGraph& script, const std::string& weight) {
  const auto home = script.origins->homes.find(weight);
  return home != script.origins->homes.end() && home->second.made_up;
}

}  // namespace parsimony::torch_io
