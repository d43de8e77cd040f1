package cli

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// profileCPU writes a CPU profile to a file until the returned function is called; without a file it does nothing.
func profileCPU(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, usageError(fmt.Errorf("--cpuprofile: %w", err))
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		_ = file.Close() // the error that matters is the profile's
		return nil, fmt.Errorf("--cpuprofile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile cut short is seen by its reader
	}, nil
}
