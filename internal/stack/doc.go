// Package stack runs real servers on this machine for the length of a benchmark: RabbitMQ, PostgreSQL and Prometheus as
// supervised children on free loopback ports, or the same set under docker compose.
//
// It knows nothing of messages or profiles. internal/fault and the command line use it through Control; Choose says which
// kind of stack serves this machine, and Describe says why.
//
// # Where servers come from
//
// A root (see FindRoot and MakeRoot) is a Debian tree made by debootstrap, entered with chroot, so that every machine
// runs the same versions. Where none can be made, the host's own packages serve (SourceHost), and where neither is to be
// had, an engine that answers `docker info` (SourceCompose).
//
// # What holds a server
//
// Each server lives in PID, mount and IPC namespaces of its own. The first process of these is this very binary, started
// again (RunChild): it mounts, enters the root, drops privileges, starts the server, forwards signals and reaps. When it
// ends, the kernel kills whatever is left in the namespace, epmd and all, and the mounts go with it. It ends with its
// parent in two independent ways: the parent-death signal, and the end of a pipe that only the parent holds open.
//
// Containers are the engine's: they outlive a spillway that is killed. A project's lock file, which only its spillway
// holds, tells the next start, and `spillway stack down`, that they may go.
//
// # Invariants
//
//   - A stack's data lies in one folder below <root>/var/lib/spillway, beside a lock file that spillway and every child
//     hold. An unlocked file therefore means that nothing of that stack runs, and only such leftovers are removed.
//   - Ports are taken below the kernel's ephemeral range: a client that dials a stopped server could otherwise be given
//     the server's own port as its source, and would find itself connected to itself.
//   - An end that was ordered through Control is no Death; every other end of a server that was ready is one.
//   - A root that was named is used or refused. Falling back to other servers would measure something else.
//   - No secret is ever an argument of a process: passwords travel in files readable by their server only.
package stack
