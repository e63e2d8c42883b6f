#include <cstdio>

int main() {
  std::puts("strandline " STRANDLINE_VERSION);
  return 0;
}
