package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// debootstrapScript serves every suite since bookworm; naming it lets an older debootstrap make a newer suite.
const debootstrapScript = "/usr/share/debootstrap/scripts/sid"

// makeRoot is MakeRoot with root rights.
func makeRoot(ctx context.Context, o MakeOptions, cache string) (*Root, error) {
	progress := &lines{w: o.Progress}
	lock, err := waitLock(ctx, filepath.Join(cache, "root.lock"), func() {
		progress.printf("another spillway is making the root; waiting for it")
	})
	if err != nil {
		return nil, fmt.Errorf("wait for another maker: %w", err)
	}
	defer lock.Close()
	if root, err := FindRoot(""); err == nil { // the other one made it
		return root, nil
	}
	if err := ensureDebootstrap(ctx, progress); err != nil {
		progress.printf("no root can be made: %v", err)
		return useHost(ctx, progress, err)
	}
	var failures []error
	for _, s := range suites {
		root, err := makeSuite(ctx, o, cache, s, lock, progress)
		if err == nil || ctx.Err() != nil {
			return root, err
		}
		progress.printf("%v", err)
		failures = append(failures, err)
	}
	return useHost(ctx, progress, errors.Join(failures...))
}

// makeSuite makes the root of one suite in a folder beside its place, and moves it there when it is complete.
func makeSuite(ctx context.Context, o MakeOptions, cache string, s suite, lock *os.File, progress *lines) (*Root, error) {
	began := time.Now()
	whole := rootPath(cache, s)
	part := whole + ".part"
	for _, old := range []string{part, whole} { // neither is complete, or it would have been found
		if err := removeIfThere(old); err != nil {
			return nil, err
		}
	}
	progress.printf("making a Debian %s root in %s (about 75 s, 0.9 GB)", s.name, whole)
	if err := debootstrap(ctx, o.Executable, s, part, lock, progress); err != nil {
		return nil, fmt.Errorf("Debian %s: %w", s.name, err)
	}
	if err := finishRoot(part); err != nil {
		return nil, fmt.Errorf("Debian %s: %w", s.name, err)
	}
	if err := os.Rename(part, whole); err != nil {
		return nil, fmt.Errorf("Debian %s: %w", s.name, err)
	}
	progress.printf("made the Debian %s root in %.0f s", s.name, time.Since(began).Seconds())
	return &Root{Path: whole, Suite: s.name}, nil
}

func removeIfThere(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := removeTree(dir); err != nil {
		return fmt.Errorf("clean an unfinished root: %w", err)
	}
	return nil
}

// finishRoot checks that the servers are there, and gives Erlang a hosts file: without one its first look-up of
// localhost fails and epmd with it.
func finishRoot(path string) error {
	if err := (&Root{Path: path}).check(AllServices()); err != nil {
		return err
	}
	hosts := "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	return os.WriteFile(filepath.Join(path, "etc/hosts"), []byte(hosts), 0o644)
}
