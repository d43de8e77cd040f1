package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// ensureDebootstrap installs debootstrap, and what it needs to check signatures, where it is missing.
func ensureDebootstrap(ctx context.Context, progress *lines) error {
	if _, err := exec.LookPath("debootstrap"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("neither debootstrap nor apt-get is here")
	}
	progress.printf("installing debootstrap")
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, "install", "--yes", "--no-install-recommends", "debootstrap", "gpgv", "debian-archive-keyring", "ca-certificates")
}

// apt runs apt-get without questions; an error carries the end of what it said.
func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, lastLines(output, logTail))
	}
	return nil
}

// debootstrap fills the folder. It runs in namespaces of its own: when it is interrupted, in whatever way, its mounts and
// processes go with it.
func debootstrap(ctx context.Context, executable string, s suite, dir string, lock *os.File, progress *lines) error {
	program, err := exec.LookPath("debootstrap")
	if err != nil {
		return err
	}
	mirror := aptMirror(ctx)
	if mirror == "" {
		progress.printf("mirror: debootstrap's own default")
	} else {
		progress.printf("mirror: the one that apt uses here, %s", mirror)
	}
	spec := childSpec{
		Root: "/",
		Dir:  "/",
		Argv: []string{program, "--variant=minbase", "--force-check-gpg", "--include=" + strings.Join(s.packages(), ","),
			s.name, dir, mirror, debootstrapScript}, // an empty mirror means the default
		Env: debootstrapEnvironment(ctx),
	}
	return runReported(ctx, executable, spec, dir+".log", lock, progress)
}

// debootstrapEnvironment passes proxies on, from the environment or from apt's own configuration.
func debootstrapEnvironment(ctx context.Context) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root"}
	for _, scheme := range []string{"http", "https"} {
		proxy := os.Getenv(scheme + "_proxy")
		if proxy == "" {
			proxy = aptProxy(ctx, scheme)
		}
		if proxy != "" {
			env = append(env, scheme+"_proxy="+proxy)
		}
	}
	if none := os.Getenv("no_proxy"); none != "" {
		env = append(env, "no_proxy="+none)
	}
	return env
}

// runReported runs a set-up program in namespaces of its own, keeps its output in a file and its phases on progress.
func runReported(ctx context.Context, executable string, spec childSpec, logPath string, held *os.File, progress *lines) error {
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("output of debootstrap: %w", err)
	}
	defer read.Close()
	launcher := newLauncher()
	defer launcher.close()
	p, err := launcher.launch(executable, "debootstrap", spec, write, held)
	if err := errors.Join(err, write.Close()); err != nil { // the child has its own copy, whose end ends the report
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() }) // gone already is as good
	defer stop()
	reportPhases(io.TeeReader(read, log), progress)
	<-p.ended
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.err != nil:
		return fmt.Errorf("debootstrap: %w\nthe end of its output (all of it is in %s):\n%s", p.err, logPath, tail(logPath, logTail))
	default:
		return os.Remove(logPath)
	}
}

// reportPhases reads the output to its end and names each phase once.
func reportPhases(output io.Reader, progress *lines) {
	seen := map[string]bool{}
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		if name := phase(scanner.Text()); name != "" && !seen[name] {
			seen[name] = true
			progress.printf("  %s", name)
		}
	}
	_, _ = io.Copy(io.Discard, output) // a line too long for the scanner must not block the program
}

// phase names what a message of debootstrap ("I: Retrieving adduser 3.154") belongs to; empty for what needs no telling.
func phase(message string) string {
	fields := strings.Fields(message)
	if len(fields) < 2 {
		return ""
	}
	switch fields[1] {
	case "Retrieving":
		return "fetching packages"
	case "Extracting":
		return "extracting the base system"
	case "Unpacking":
		return "unpacking"
	case "Configuring":
		return "configuring"
	default:
		return ""
	}
}
