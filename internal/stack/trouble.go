package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Trouble is a state that a service can be held in and brought out of again.
type Trouble string

// The troubles. Alarms are the broker's alone: it reads no more from connections that publish.
const (
	Stopped     Trouble = "stopped"      // an orderly stop; then started again
	Killed      Trouble = "killed"       // SIGKILL to all its processes; then started again
	Frozen      Trouble = "frozen"       // SIGSTOP to every process; then SIGCONT
	MemoryAlarm Trouble = "memory-alarm" // the memory watermark lowered to nothing; then the stack's own put back
	DiskAlarm   Trouble = "disk-alarm"   // more free space asked for than a disk has; then the stack's own limit put back
	Apart       Trouble = "apart"        // a node of a cluster that the others refuse, and that refuses them; then let in again
)

// ErrUnknownTrouble is returned for a trouble that the service cannot have.
var ErrUnknownTrouble = errors.New("not a trouble that this service can be held in")

// Release ends a trouble and returns when the service has been told and, where it is started again, when it is ready. Call
// it once.
type Release func(ctx context.Context) error

// releaseTimeout bounds a release that nobody waits for. RabbitMQ needs about 5 s to start on two cores.
const releaseTimeout = 90 * time.Second

// tooMuch is more free space than a disk has.
const tooMuch = "1000000GB"

// Troubles lists what a service can be held in.
func Troubles(service string) []Trouble {
	common := []Trouble{Stopped, Killed, Frozen}
	if isNode(service) {
		return append(common, MemoryAlarm, DiskAlarm, Apart)
	}
	return common
}

// hold brings a service into trouble. When that fails, what was done of it is undone.
func hold(ctx context.Context, c Control, service string, t Trouble) (Release, error) {
	if !slices.Contains(Troubles(service), t) {
		return nil, fmt.Errorf("%w: %s of %s", ErrUnknownTrouble, t, service)
	}
	if _, has := c.Versions()[service]; !has {
		return nil, fmt.Errorf("%w: %q", ErrUnknownService, service)
	}
	release := func(ctx context.Context) error { return leave(ctx, c, service, t) }
	if err := enter(ctx, c, service, t); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("hold %s %s: %w", service, t, err), release(undo))
	}
	return release, nil
}

func enter(ctx context.Context, c Control, service string, t Trouble) error {
	switch t {
	case Stopped:
		return c.Stop(ctx, service)
	case Killed:
		return c.Signal(ctx, service, syscall.SIGKILL)
	case Frozen:
		return c.Signal(ctx, service, syscall.SIGSTOP)
	case MemoryAlarm:
		return c.Admin(ctx, service, "set_vm_memory_high_watermark", "0")
	case Apart:
		return apart(ctx, c, service, shutOut)
	default:
		return c.Admin(ctx, service, "set_disk_free_limit", tooMuch)
	}
}

func leave(ctx context.Context, c Control, service string, t Trouble) error {
	switch t {
	case Stopped, Killed:
		return c.Start(ctx, service)
	case Frozen:
		return c.Signal(ctx, service, syscall.SIGCONT)
	case MemoryAlarm:
		return c.Admin(ctx, service, "set_vm_memory_high_watermark", MemoryWatermark)
	case Apart:
		return apart(ctx, c, service, letIn)
	default:
		return c.Admin(ctx, service, "set_disk_free_limit", DiskFreeLimit)
	}
}

// What is evaluated at a node that is to be apart from its peers, which %s lists. Two nodes connect only when each has the cookie
// that the other expects of it; another one for the peers breaks no connection, so these are closed too. From then on both sides
// refuse each other's attempts. Clients are not concerned. RabbitMQ's own tool has the node's cookie, and still gets in.
const (
	shutOut = `[begin erlang:set_cookie(P, spillway_apart), erlang:disconnect_node(P) end || P <- [%s]], ok.`
	letIn   = `[begin erlang:set_cookie(P, erlang:get_cookie()), net_kernel:connect_node(P) end || P <- [%s]], ok.`
)

// apart evaluates one of them.
func apart(ctx context.Context, c Control, service, order string) error {
	var peers []string
	nodes := c.Addresses().Nodes
	for _, n := range nodes {
		if n.Service != service {
			peers = append(peers, "'"+n.Name+"'")
		}
	}
	if len(peers) == len(nodes) || len(peers) == 0 {
		return fmt.Errorf("%w: %s is no node of one", ErrNoCluster, service)
	}
	return c.Admin(ctx, service, "eval", fmt.Sprintf(order, strings.Join(peers, ", ")))
}
