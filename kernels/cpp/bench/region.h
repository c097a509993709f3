// The region of interest: tells perf (over its control fifos), callgrind (by client requests) and
// VTune (by its collector library) which part of the run counts.
#pragma once

#include <string>

#include "itt.h"
#include "moe_prof.h"

namespace bench {

class Region {
public:
    // Empty names: no fifo. Nothing is opened before connect().
    Region(std::string control_fifo, std::string ack_fifo);
    ~Region();
    Region(const Region &) = delete;
    Region &operator=(const Region &) = delete;

    // Each returns an empty string, or one line that says what failed. The plan's own threads are
    // told, since callgrind switches each thread's counting on and off by itself; nullptr for a plan
    // whose threads are not known: then this thread alone.
    std::string connect();
    std::string begin(moe_plan *plan); // counting starts
    std::string end(moe_plan *plan);   // counting stops

private:
    std::string command(const char *text);
    std::string wait_for_ack(const char *text);

    IttCollector itt_;
    std::string control_name_;
    std::string ack_name_;
    int control_ = -1;
    int ack_ = -1;
};

// Callgrind starts to instrument; call before the warm-up, so that caches are warm when it counts.
void start_instrumentation();

} // namespace bench
