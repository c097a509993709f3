// Whether two ranges of addresses are the same memory, mapped twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace moe {

// The file mappings of this process that others of it may share, as they were when it was made; none
// where the system does not tell them.
class SharedMappings {
public:
    SharedMappings();

    // False also where that is not known.
    bool same(const void *a, const void *b, std::size_t size) const;

private:
    struct Mapping {
        std::uintptr_t begin, end;
        uint64_t offset;  // of begin in the file
        std::string file; // device and inode
    };
    const Mapping *around(std::uintptr_t address) const;

    std::vector<Mapping> mappings_; // by address
};

} // namespace moe
