#include "strandline/python.h"

namespace strandline {

std::vector<std::string> python_words(const std::string& python, const std::string& module) {
  // "" is what -c puts before all else for the current directory.
  static const std::string launcher =
      "import sys\n"
      "sys.path[:] = [place for place in sys.path if place]\n"
      "import runpy\n"
      "try:\n"
      "    import strandline\n"
      "except ModuleNotFoundError as error:\n"
      "    if error.name != 'strandline': raise\n"
      "    sys.exit(f'{sys.executable}: No module named strandline')\n"
      "module = sys.argv[1]\n"
      "del sys.argv[1]\n"
      "runpy.run_module(module, run_name='__main__', alter_sys=True)\n";
  return {python, "-c", launcher, module};
}

}  // namespace strandline
