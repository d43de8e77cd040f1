//go:build linux

package stack

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// deadStack makes what a killed stack leaves: a folder with data, and a lock file that nobody holds.
func deadStack(t *testing.T, parent, id string) string {
	t.Helper()
	dir := filepath.Join(parent, id)
	if err := os.MkdirAll(filepath.Join(dir, "postgres/data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{dir + ".lock", filepath.Join(dir, "postgres/data/PG_VERSION")} {
		if err := os.WriteFile(file, []byte("18\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpeningDataCleansDeadStacksAndSparesLiveOnes(t *testing.T) {
	t.Parallel()
	root := &Root{Path: t.TempDir()}
	live, err := openData(t.Context(), root, "live")
	if err != nil {
		t.Fatal(err)
	}
	dead := deadStack(t, root.join(dataParent), "dead")
	next, err := openData(t.Context(), root, "next")
	if err != nil {
		t.Fatal(err)
	}
	if exists(dead) || exists(dead+".lock") {
		t.Error("what a dead stack left is still there")
	}
	if !exists(live.host()) {
		t.Error("a live stack's folder was removed")
	}
	for _, d := range []*dataDir{live, next} {
		if err := d.remove(); err != nil || exists(d.host()) {
			t.Errorf("remove: %v, folder there: %v", err, exists(d.host()))
		}
	}
}

func TestRemovalRefusesToCrossAMountPoint(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	precious := filepath.Join(elsewhere, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root := &Root{Path: t.TempDir()}
	dead := deadStack(t, root.join(dataParent), "dead")
	point := filepath.Join(dead, "postgres/data")
	if err := syscall.Mount(elsewhere, point, "", syscall.MS_BIND, ""); err != nil {
		t.Fatalf("bind mount, which needs root rights: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if _, err := openData(t.Context(), root, "next"); !errors.Is(err, errMounted) {
		t.Errorf("cleaning over a mount gives %v, want %v", err, errMounted)
	}
	if !exists(precious) {
		t.Error("the file behind the mount is gone")
	}
}

func TestALockLastsAsLongAsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLock(path); !errors.Is(err, errLocked) {
		t.Errorf("a second lock gives %v, want %v", err, errLocked)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := tryLock(path)
	if err != nil {
		t.Fatalf("a lock after the release: %v", err)
	}
	again.Close()
}
