package fault

import (
	"context"
	"syscall"

	"spillway/internal/stack"
)

// Kinds of faults of a server.
const (
	KindPostgresStop   = "postgres.stop"
	KindPostgresFreeze = "postgres.freeze"
	KindBrokerRestart  = "broker.restart"
	KindBrokerFreeze   = "broker.freeze"
	KindMemoryAlarm    = "broker.memory-alarm"
	KindDiskAlarm      = "broker.disk-alarm"
)

// Stop is a real, orderly stop of a server, as an operator or a failover would do it.
func Stop(kind string, s Server) *ServerFault {
	return &ServerFault{Name: kind, Server: s, Break: stop, Mend: start}
}

func stop(ctx context.Context, c stack.Control, service string) error  { return c.Stop(ctx, service) }
func start(ctx context.Context, c stack.Control, service string) error { return c.Start(ctx, service) }

// Freeze stops every process of a server where it is (SIGSTOP): connections stay open and nothing is answered, as on a machine
// that swaps or is being migrated.
func Freeze(kind string, s Server) *ServerFault {
	return &ServerFault{Name: kind, Server: s, Break: signal(syscall.SIGSTOP), Mend: signal(syscall.SIGCONT)}
}

func signal(sig syscall.Signal) func(context.Context, stack.Control, string) error {
	return func(ctx context.Context, c stack.Control, service string) error { return c.Signal(ctx, service, sig) }
}

// MemoryAlarm raises RabbitMQ's memory alarm by lowering its watermark to nothing, and puts the stack's own back.
func MemoryAlarm(s Server) *ServerFault {
	return &ServerFault{
		Name: KindMemoryAlarm, Server: s,
		Break: admin("set_vm_memory_high_watermark", "0"), Mend: admin("set_vm_memory_high_watermark", stack.MemoryWatermark),
	}
}

// tooMuch is more free space than a disk has.
const tooMuch = "1000000GB"

// DiskAlarm raises RabbitMQ's disk alarm by asking for more free space than there is, and puts the stack's own limit back.
func DiskAlarm(s Server) *ServerFault {
	return &ServerFault{
		Name: KindDiskAlarm, Server: s,
		Break: admin("set_disk_free_limit", tooMuch), Mend: admin("set_disk_free_limit", stack.DiskFreeLimit),
	}
}

func admin(args ...string) func(context.Context, stack.Control, string) error {
	return func(ctx context.Context, c stack.Control, service string) error {
		return c.Admin(ctx, service, args...)
	}
}
