package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// hostPackages are the distribution's own servers.
var hostPackages = []string{"rabbitmq-server", "postgresql", "prometheus"}

// useHost falls back to the distribution's own packages, installing them where they are missing; why says what made a
// root impossible.
func useHost(ctx context.Context, progress *lines, why error) (*Root, error) {
	root, err := hostRoot(AllServices())
	if err != nil {
		progress.printf("installing the distribution's own servers instead")
		if err := installHost(ctx); err != nil {
			return nil, errors.Join(why, err)
		}
		if root, err = hostRoot(AllServices()); err != nil {
			return nil, errors.Join(why, err)
		}
	}
	progress.printf("using the distribution's own servers, which may be older: what needs RabbitMQ 4.3 will be skipped")
	return root, nil
}

// installHost installs the packages without letting them start their services.
func installHost(ctx context.Context) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install %v: %w", hostPackages, err)
	}
	allow, err := denyServiceStarts()
	if err != nil {
		return err
	}
	install := apt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, hostPackages...)...)
	return errors.Join(install, allow())
}

// policyFile is asked by Debian's packages before they start a service; 101 forbids it.
const policyFile = "/usr/sbin/policy-rc.d"

// denyServiceStarts puts a policy in place that forbids starts, and returns what takes it away again. A policy that is
// there already is somebody's decision and stays.
func denyServiceStarts() (func() error, error) {
	f, err := os.OpenFile(policyFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("forbid service starts: %w", err)
	}
	if _, err := f.WriteString("#!/bin/sh\nexit 101\n"); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(policyFile))
	}
	return func() error { return os.Remove(policyFile) }, f.Close()
}
