// Source: proc(5), /proc/PID/maps: address range, permissions with `s` for a shared mapping, offset,
// device and inode, by ascending address.
#include "same_memory.h"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace moe {

SharedMappings::SharedMappings() {
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> maps(std::fopen("/proc/self/maps", "r"),
                                                                std::fclose);
    char line[512];
    bool whole = true; // the line's begin, and not the rest of a longer one
    while (maps != nullptr && std::fgets(line, sizeof line, maps.get()) != nullptr) {
        unsigned long long begin = 0, end = 0, offset = 0, inode = 0;
        char access[5] = "", device[32] = "";
        const bool read = whole && std::sscanf(line, "%llx-%llx %4s %llx %31s %llu", &begin, &end,
                                               access, &offset, device, &inode) == 6;
        whole = std::string(line).find('\n') != std::string::npos;
        if (read && access[3] == 's' && inode != 0) {
            mappings_.push_back({static_cast<std::uintptr_t>(begin),
                                 static_cast<std::uintptr_t>(end), offset,
                                 std::string(device) + " " + std::to_string(inode)});
        }
    }
}

bool SharedMappings::same(const void *a, const void *b, std::size_t size) const {
    std::uintptr_t x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
    while (size > 0) {
        const Mapping *left = around(x), *right = around(y);
        if (left == nullptr || right == nullptr || left->file != right->file ||
            left->offset + (x - left->begin) != right->offset + (y - right->begin)) {
            return false;
        }
        const std::size_t step = std::min({size, static_cast<std::size_t>(left->end - x),
                                           static_cast<std::size_t>(right->end - y)});
        x += step;
        y += step;
        size -= step;
    }
    return true;
}

const SharedMappings::Mapping *SharedMappings::around(std::uintptr_t address) const {
    const auto after = std::upper_bound(
        mappings_.begin(), mappings_.end(), address,
        [](std::uintptr_t value, const Mapping &mapping) { return value < mapping.begin; });
    if (after == mappings_.begin() || address >= (after - 1)->end) {
        return nullptr;
    }
    return &*(after - 1);
}

} // namespace moe
