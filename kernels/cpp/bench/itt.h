// Switches VTune's collection on and off: a run that VTune started paused collects between resume()
// and pause() only.
//
// VTune names its collector library in the environment variable INTEL_LIBITTNOTIFY64 (or ...32);
// without that variable nothing is loaded and the calls do nothing.
#pragma once

#include <string>

namespace bench {

class IttCollector {
public:
    // Loads the library that VTune set, if any. Returns an empty string, or one line that says why
    // it cannot be used.
    std::string connect();

    void resume() const;
    void pause() const;

private:
    void (*resume_)() = nullptr;
    void (*pause_)() = nullptr;
};

} // namespace bench
