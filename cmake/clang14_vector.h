// Included before everything where clang-tidy 14 looks at libtorch: clang 14 instantiates constexpr
// members of a std::vector while its elements are incomplete, which c10::IValue's are.
#pragma once

#include <string>

#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_bits  // declared as constexpr elsewhere
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
