# Run as a script: writes OUTPUT, a C++ source with a function for each NAME FILE... of TEXTS.

set(source "// Written by cmake/EmbedTexts.cmake.\n#include \"${HEADER}\"\n\nnamespace parsimony {\n")
while(TEXTS)
  list(POP_FRONT TEXTS name)
  set(text)
  while(TEXTS MATCHES "^[^;]*/")  # a file, not the next name
    list(POP_FRONT TEXTS file)
    file(READ "${file}" part)
    string(APPEND text "${part}")
  endwhile()
  string(FIND "${text}" ")TEXT\"" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${name} holds what would end a raw string")
  endif()
  string(APPEND source
    "\nstd::string_view ${name}() {\n"
    "  static constexpr char kText[] = R\"TEXT(${text})TEXT\";\n"
    "  return {kText, sizeof kText - 1};\n"
    "}\n")
endwhile()
string(APPEND source "\n}  // namespace parsimony\n")
file(WRITE "${OUTPUT}" "${source}")
