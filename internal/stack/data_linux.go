package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// dataParent is where stacks keep their folders inside a root. Short, because socket paths must stay under 100 bytes.
const dataParent = "/var/lib/spillway"

// dataDir is the folder of one stack and the lock that says it is in use.
type dataDir struct {
	root *Root
	id   string
	lock *os.File
}

// openData cleans what dead stacks left in the root and makes a folder for a new one.
func openData(ctx context.Context, root *Root, id string) (*dataDir, error) {
	parent := root.join(dataParent)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	all, err := waitLock(ctx, filepath.Join(parent, "lock"), func() {}) // nobody holds it longer than a cleaning
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := cleanLeftovers(parent); err != nil {
		return nil, err
	}
	d := &dataDir{root: root, id: id}
	if d.lock, err = tryLock(filepath.Join(parent, id+".lock")); err != nil {
		return nil, err
	}
	if err := os.Mkdir(root.join(d.path()), 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("data folder: %w", err), d.lock.Close())
	}
	return d, nil
}

// path returns the folder, or something below it, as seen inside the root.
func (d *dataDir) path(elements ...string) string {
	return filepath.Join(append([]string{dataParent, d.id}, elements...)...)
}

// host returns the same as a path of this machine.
func (d *dataDir) host(elements ...string) string { return d.root.join(d.path(elements...)) }

// mkdir makes a folder in which only its owner can write.
func (d *dataDir) mkdir(owner account, elements ...string) error {
	path := d.host(elements...)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return os.Chown(path, owner.uid, owner.gid)
}

// write makes a file that its owner alone can read.
func (d *dataDir) write(owner account, content string, elements ...string) error {
	path := d.host(elements...)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("server file: %w", err)
	}
	return os.Chown(path, owner.uid, owner.gid)
}

// remove deletes the folder and its lock; nothing of the stack may run any more.
func (d *dataDir) remove() error {
	err := removeTree(d.host())
	if err == nil {
		err = os.Remove(d.lock.Name())
	}
	return errors.Join(err, d.lock.Close())
}

// cleanLeftovers removes the folders of stacks whose lock nobody holds. One that cannot be removed safely is an error,
// because it would stay for ever unseen.
func cleanLeftovers(parent string) error {
	locks, err := filepath.Glob(filepath.Join(parent, "*.lock"))
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, path := range locks {
		lock, err := tryLock(path)
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return err
		}
		err = errors.Join(removeLeftover(strings.TrimSuffix(path, ".lock"), path), lock.Close())
		if err != nil {
			return fmt.Errorf("clean what a stack left: %w", err)
		}
	}
	return nil
}

func removeLeftover(dir, lock string) error {
	if _, err := os.Lstat(dir); err == nil {
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	return os.Remove(lock)
}

// errMounted is returned instead of crossing a mount point.
var errMounted = errors.New("refusing to remove across a mount point")

// removeTree deletes a folder unless something is mounted in it. Two guards, since neither sees all: the mount table
// knows bind mounts of the same device, the device number knows mounts that the table of this namespace does not name.
func removeTree(dir string) error {
	mounted, err := mountBelow(dir)
	if err != nil {
		return err
	}
	if mounted != "" {
		return fmt.Errorf("%w: %s", errMounted, mounted)
	}
	if err := sameDevice(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// mountBelow returns the first mount point at or below dir; empty when there is none.
func mountBelow(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir) // the table names real paths
	if err != nil {
		return "", fmt.Errorf("mount table: %w", err)
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("mount table: %w", err)
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescape.Replace(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			return point, nil
		}
	}
	return "", lines.Err()
}

func sameDevice(dir string) error {
	var device uint64
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		var stat syscall.Stat_t
		if err := syscall.Lstat(path, &stat); err != nil {
			return fmt.Errorf("look at %s: %w", path, err)
		}
		if device == 0 {
			device = stat.Dev
		}
		if stat.Dev != device {
			return fmt.Errorf("%w: %s", errMounted, path)
		}
		return nil
	})
}
