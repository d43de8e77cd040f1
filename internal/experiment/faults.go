package experiment

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"spillway/internal/fault"
	"spillway/internal/profile"
	"spillway/internal/stack"
)

// faults places the profile's faults on the run's time base: their times count from the start of the measured load.
func (r *run) faults() []fault.Entry {
	var entries []fault.Entry
	for _, f := range r.o.Profile.Faults {
		entries = append(entries, fault.Entry{
			Fault: r.fault(f), From: leadTime + r.o.Profile.Load.Warmup + f.From, For: f.For,
		})
	}
	return entries
}

func (r *run) fault(f profile.Fault) fault.Fault {
	switch family, _, _ := strings.Cut(f.Kind, "."); family {
	case "postgres":
		return r.databaseFault(f)
	case "broker":
		return r.brokerFault(f)
	case "topology":
		return r.topologyFault(f)
	case "network":
		return r.networkFault(f)
	default: // the profile knows no other family
		return r.workersFault(f)
	}
}

func (r *run) databaseFault(f profile.Fault) fault.Fault {
	switch f.Kind {
	case fault.KindPostgresStop:
		return fault.Stop(f.Kind, r.databaseServer())
	case fault.KindPostgresFreeze:
		return fault.Freeze(f.Kind, r.databaseServer())
	case fault.KindPoolSqueeze:
		return r.poolSqueeze(f)
	case fault.KindHeldSnapshot:
		return r.heldSnapshot(f)
	default:
		return r.rowLock(f)
	}
}

func (r *run) topologyFault(f profile.Fault) fault.Fault {
	switch f.Kind {
	case fault.KindBindingRemoved:
		return r.bindingRemoved(f)
	case fault.KindParkingUnavailable:
		return r.parkingUnavailable(f)
	default:
		return r.policyRemoved(f)
	}
}

func (r *run) brokerFault(f profile.Fault) fault.Fault {
	switch f.Kind {
	case fault.KindBrokerRestart:
		return fault.Stop(f.Kind, r.brokerServer(r.silenceMarks))
	case fault.KindBrokerKill:
		return fault.Kill(r.brokerServer(r.silenceMarks), r.declaredAt)
	case fault.KindBrokerFreeze:
		return fault.Freeze(f.Kind, r.brokerServer(r.silenceMarks))
	case fault.KindMemoryAlarm:
		return fault.MemoryAlarm(r.brokerServer(r.blockedMarks))
	case fault.KindDiskAlarm:
		return fault.DiskAlarm(r.brokerServer(r.blockedMarks))
	case fault.KindNodeKill, fault.KindLeaderLoss, fault.KindPartition:
		return r.clusterFault(f)
	default:
		return r.closeConnections(f)
	}
}

// controlOf returns the stack if the service belongs to it; nil when that was given by address.
func (r *run) controlOf(service string) stack.Control {
	if c := r.o.Servers.Control; c != nil && c.Versions()[service] != "" {
		return c
	}
	return nil
}

func (r *run) databaseServer() fault.Server {
	return fault.Server{
		Service: stack.PostgreSQL, Control: r.controlOf(stack.PostgreSQL), Ping: r.db.Ping, Marks: r.databaseMarks,
	}
}

// databaseMarks are what a database that does not answer leaves behind.
func (r *run) databaseMarks() []fault.Mark {
	return []fault.Mark{
		{Name: "transient_failures", Value: float64(r.signals.transient.Load())},
		{Name: "silent_seconds", Value: r.signals.effects.total(r.base.Now()).Seconds()},
	}
}

func (r *run) brokerServer(marks func() []fault.Mark) fault.Server {
	return fault.Server{
		Service: stack.RabbitMQ, Control: r.controlOf(stack.RabbitMQ), Marks: marks, Ping: r.pingBroker,
	}
}

// pingBroker logs in.
func (r *run) pingBroker(ctx context.Context) error {
	_, _, err := r.admin.Server(ctx)
	return err
}

// silenceMarks are what a broker that does not answer leaves behind.
func (r *run) silenceMarks() []fault.Mark {
	return []fault.Mark{
		{Name: "silent_seconds", Value: r.signals.confirms.total(r.base.Now()).Seconds()},
		{Name: "reconnects", Value: float64(r.signals.reconnects.Load())},
	}
}

// blockedMarks are what a broker leaves behind that does not want to hear of more.
func (r *run) blockedMarks() []fault.Mark {
	return []fault.Mark{{Name: "blocked_seconds", Value: r.signals.blockedFor(r.base.Now()).Seconds()}}
}

func (r *run) closeConnections(f profile.Fault) fault.Fault {
	c := &fault.Repeated{Name: f.Kind, Times: f.Times, For: f.For, Counts: r.reconnectMarks}
	beginnings := connectionsOf(f.Side)
	switch control := r.controlOf(stack.RabbitMQ); {
	case control != nil:
		c.Do = func(ctx context.Context) (bool, error) {
			order := closeOrder(r.broker.Driver().Vhost(), beginnings)
			return true, control.Admin(ctx, stack.RabbitMQ, "eval", order)
		}
	case r.management != nil && r.o.Profile.Topology.Management == "full":
		c.Do = func(ctx context.Context) (bool, error) {
			n, err := r.management.CloseConnections(ctx, r.broker.Driver().Vhost(), beginnings...)
			return n > 0, err
		}
	default:
		c.Unavailable = fault.NoWayToClose
	}
	return c
}

func (r *run) reconnectMarks() []fault.Mark {
	return []fault.Mark{{Name: "reconnects", Value: float64(r.signals.reconnects.Load())}}
}

// closeOrder is what a broker of our own is told: it asks its connections themselves, where the management API would know of
// them seconds later. Names are written as lists of bytes, so that no text can be read as code.
func closeOrder(vhost string, beginnings []string) string {
	var wanted []string
	for _, b := range beginnings {
		wanted = append(wanted, binary(b))
	}
	return fmt.Sprintf(`V = %s, Bs = [%s],
Name = fun(I) -> case lists:keyfind(<<"connection_name">>, 1, proplists:get_value(client_properties, I, [])) of {_, _, N} -> N; _ -> <<>> end end,
Ours = fun(I) -> proplists:get_value(vhost, I) =:= V andalso (Bs =:= [] orelse lists:any(fun(B) -> string:prefix(Name(I), B) =/= nomatch end, Bs)) end,
[rabbit_networking:close_connection(proplists:get_value(pid, I), "closed by a fault of spillway")
 || I <- rabbit_networking:connection_info_all([pid, vhost, client_properties]), Ours(I)], ok.`, binary(vhost), strings.Join(wanted, ", "))
}

// binary writes a text as an Erlang binary.
func binary(text string) string {
	bytes := make([]string, len(text))
	for i := range len(text) {
		bytes[i] = strconv.Itoa(int(text[i]))
	}
	return "<<" + strings.Join(bytes, ",") + ">>"
}

// connectionsOf returns what the names of a side's connections begin with; nothing for all of them.
func connectionsOf(side string) []string {
	switch side {
	case profile.SideProducer:
		return []string{"spillway-producer", "spillway-relay"}
	case profile.SideWorkers:
		return []string{"spillway-worker", "spillway-republisher", eventsConnection}
	default:
		return nil
	}
}
