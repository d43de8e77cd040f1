package stack

import (
	"fmt"
	"net/url"
	"path"
	"strconv"
	"syscall"
)

// rabbitmq is one RabbitMQ node, 3.10 or later, that no other machine can reach.
type rabbitmq struct {
	base
	password string
}

// Positions in base.ports.
const (
	rabbitAMQP = iota
	rabbitManagement
	rabbitPrometheus
	rabbitDistribution
	rabbitEPMD
	rabbitPorts
)

func (*rabbitmq) name() string               { return RabbitMQ }
func (*rabbitmq) portCount() int             { return rabbitPorts }
func (*rabbitmq) setup() (childSpec, bool)   { return childSpec{}, false }
func (*rabbitmq) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (r *rabbitmq) file(name string) string  { return r.data.path(RabbitMQ, name) }
func (r *rabbitmq) port(position int) string { return strconv.Itoa(r.ports[position]) }

func (r *rabbitmq) prepare(ports []int) error {
	r.ports = ports
	files := map[string]string{
		"rabbitmq.conf":   r.config(),
		"advanced.config": rabbitAdvanced,
		"enabled_plugins": "[rabbitmq_management,rabbitmq_prometheus].\n",
		"environment":     "", // read in place of the distribution's, so that nothing of /etc applies
	}
	for name, content := range files {
		if err := r.data.write(r.owner, content, RabbitMQ, name); err != nil {
			return err
		}
	}
	return nil
}

// rabbitAdvanced makes quorum queues report every second, not every five: a key that rabbitmq.conf does not have.
const rabbitAdvanced = "[{rabbit,[{quorum_tick_interval,1000}]}].\n"

// config holds the password, and so is the server's alone. The limits keep a small machine from raising an alarm in the
// middle of a run: memory is capped at the share that 4.x uses, free disk at its default.
func (r *rabbitmq) config() string {
	return fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = %d
default_user = %s
default_pass = %s
default_user_tags.administrator = true
default_permissions.configure = .*
default_permissions.read = .*
default_permissions.write = .*
vm_memory_high_watermark.relative = %s
disk_free_limit.absolute = %s
log.console = true
log.console.level = info
log.file = false
`, r.ports[rabbitAMQP], r.ports[rabbitManagement], r.ports[rabbitPrometheus], userName, r.password, MemoryWatermark, DiskFreeLimit)
}

func (r *rabbitmq) spec() childSpec { return r.command(RabbitMQ, r.environment(), r.program) }

// admin runs the tool that lies beside the server, in the same environment: that names node and cookie.
func (r *rabbitmq) admin(args []string) (childSpec, bool) {
	tool := path.Join(path.Dir(r.program), rabbitTool)
	return r.command(RabbitMQ, r.environment(), append([]string{tool}, args...)...), true
}

// environment names every file and port: the script's own defaults point into /etc and /var/lib/rabbitmq.
func (r *rabbitmq) environment() []string {
	return []string{
		"ERL_EPMD_PORT=" + r.port(rabbitEPMD),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=spillway-" + r.data.id + "@localhost",
		"RABBITMQ_DIST_PORT=" + r.port(rabbitDistribution),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_CONF_ENV_FILE=" + r.file("environment"),
		"RABBITMQ_CONFIG_FILE=" + r.file("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + r.file("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + r.file("enabled_plugins"),
		"RABBITMQ_FEATURE_FLAGS_FILE=" + r.file("feature_flags"),
		"RABBITMQ_MNESIA_BASE=" + r.file("data"),
		"RABBITMQ_LOG_BASE=" + r.file("log"),
		"RABBITMQ_LOGS=-",
		"RABBITMQ_PID_FILE=" + r.file("pid"),
	}
}

func (r *rabbitmq) addresses(a *Addresses) {
	login := url.UserPassword(userName, r.password)
	a.AMQP = (&url.URL{Scheme: "amqp", User: login, Host: "127.0.0.1:" + r.port(rabbitAMQP), Path: "/"}).String()
	a.Management = (&url.URL{Scheme: "http", User: login, Host: "127.0.0.1:" + r.port(rabbitManagement)}).String()
}
