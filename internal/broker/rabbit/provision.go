package rabbit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"spillway/internal/broker"
	"spillway/internal/topology"
)

// Values of ProvisionOptions.
const (
	IsolationVhost       = "vhost"
	IsolationPrefix      = "prefix"
	IsolationPredeclared = "predeclared"

	ManagementFull = "full"
	ManagementRead = "read"
	ManagementNone = "none"
)

// VhostPrefix starts the name of every virtual host that Provision makes; ListVhosts finds leftovers by it.
const VhostPrefix = "spillway-"

// VhostOf returns the virtual host of a run that has one of its own.
func VhostOf(runID string) string { return VhostPrefix + runID }

// undoBound is how long Provision may take to undo what it made after it failed, even when its context is over.
const undoBound = 15 * time.Second

var (
	// ErrImpossible is returned for options that exclude each other.
	ErrImpossible = errors.New("the isolation, declare and management settings do not fit together")
	// ErrOccupied is returned for a queue that is not empty, or has consumers, before the run, and for a virtual host
	// that exists already.
	ErrOccupied = errors.New("in use already")
)

// ProvisionOptions says where a topology is to be made, and with which rights.
type ProvisionOptions struct {
	Isolation  string // IsolationVhost, IsolationPrefix (in the plan's names), or IsolationPredeclared
	Declare    string // topology.DeclarePolicy, DeclareArguments or DeclareNone, as the plan was built with
	Management string // ManagementFull, ManagementRead or ManagementNone
	RunID      string // names the virtual host
	Plan       *topology.Plan
	Driver     *Driver     // on the virtual host of the address
	Client     *Management // nil with ManagementNone
}

// Provisioned is a topology that is ready for load.
type Provisioned struct {
	options ProvisionOptions
	driver  *Driver
	admin   *Admin
	made    topology.Plan // what did not exist before, and is Remove's to delete
	vhost   bool          // the virtual host is ours
}

// Provision makes the topology, sets its policies, checks what is in force, and sees that the queues are empty and
// unused. After an error nothing that it made is left.
func Provision(ctx context.Context, o ProvisionOptions) (*Provisioned, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &Provisioned{options: o, driver: o.Driver}
	if err := p.make(ctx); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoBound)
		defer cancel()
		return nil, errors.Join(err, p.undo(undo, err))
	}
	return p, nil
}

// undo removes what was made before the cause of the failure. A user who may not make a thing may not delete it either,
// and has not made it: that it cannot be deleted is no second problem.
func (p *Provisioned) undo(ctx context.Context, cause error) error {
	err := p.Remove(ctx)
	if errors.Is(cause, broker.ErrRightMissing) && errors.Is(err, broker.ErrRightMissing) {
		return nil
	}
	return err
}

func (o *ProvisionOptions) check() error {
	switch {
	case o.Isolation == IsolationVhost && o.Management != ManagementFull:
		return fmt.Errorf("%w: isolation vhost makes a virtual host and needs management full; use isolation prefix or predeclared", ErrImpossible)
	case o.Isolation == IsolationVhost && o.Declare == topology.DeclareNone:
		return fmt.Errorf("%w: a fresh virtual host has nothing declared; use declare policy or arguments", ErrImpossible)
	case o.Isolation == IsolationPredeclared && o.Declare != topology.DeclareNone:
		return fmt.Errorf("%w: isolation predeclared declares nothing; use declare none", ErrImpossible)
	case o.Declare == topology.DeclarePolicy && o.Management != ManagementFull:
		return fmt.Errorf("%w: declare policy sets policies and needs management full; use declare arguments or none", ErrImpossible)
	case o.Management != ManagementNone && o.Client == nil:
		return fmt.Errorf("%w: management %s needs the address of the management API", ErrImpossible, o.Management)
	}
	return nil
}

// make goes through the steps in an order in which a failure leaves the least: policies come before queues, so that a
// queue never exists without its settings.
func (p *Provisioned) make(ctx context.Context) error {
	if err := p.makeVhost(ctx); err != nil {
		return err
	}
	p.admin = NewAdmin(p.driver)
	for _, step := range []func(context.Context) error{p.setPolicies, p.declare, p.checkUnused, p.checkEffective} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *Provisioned) makeVhost(ctx context.Context) error {
	if p.options.Isolation != IsolationVhost {
		return nil
	}
	name := VhostPrefix + p.options.RunID
	taken, err := p.options.Client.ListVhosts(ctx, name)
	if err != nil {
		return err
	}
	if slices.Contains(taken, name) {
		return fmt.Errorf("%w: virtual host %q exists already: choose another run id", ErrOccupied, name)
	}
	p.vhost = true // before it is made: an error may come after the broker did it
	p.driver = p.options.Driver.WithVhost(name)
	return p.options.Client.CreateVhost(ctx, name, p.driver.Username())
}

func (p *Provisioned) setPolicies(ctx context.Context) error {
	if p.options.Declare != topology.DeclarePolicy {
		return nil
	}
	for _, policy := range p.options.Plan.Policies {
		p.made.Policies = append(p.made.Policies, policy)
		if err := p.options.Client.PutPolicy(ctx, p.driver.Vhost(), policy); err != nil {
			return err
		}
	}
	return nil
}

// declare makes what does not exist yet, and remembers it. In a virtual host of our own nothing exists.
func (p *Provisioned) declare(ctx context.Context) error {
	plan := p.options.Plan
	if p.options.Declare == topology.DeclareNone {
		return p.admin.VerifyPassive(ctx, plan)
	}
	if !p.vhost {
		missing, err := p.admin.Missing(ctx, plan)
		if err != nil {
			return err
		}
		p.made.Exchanges, p.made.Queues = missing.Exchanges, missing.Queues
	}
	return p.admin.Declare(ctx, plan)
}

func (p *Provisioned) checkUnused(ctx context.Context) error {
	if p.vhost {
		return nil
	}
	for _, q := range p.options.Plan.Queues {
		depth, err := p.admin.Depth(ctx, q.Name)
		if err != nil {
			return err
		}
		if depth != (Depth{}) {
			return fmt.Errorf("%w: queue %q at %s holds %d ready messages and has %d consumers: empty it and stop them, or choose another prefix",
				ErrOccupied, q.Name, p.driver, depth.Ready, depth.Consumers)
		}
	}
	return nil
}

func (p *Provisioned) checkEffective(ctx context.Context) error {
	if p.options.Management == ManagementNone {
		return nil
	}
	return p.options.Client.CheckEffective(ctx, p.driver.Vhost(), p.options.Plan)
}

// Driver returns the driver on the run's virtual host.
func (p *Provisioned) Driver() *Driver { return p.driver }

// Admin returns the admin on the run's virtual host. It is closed by Remove and by Close.
func (p *Provisioned) Admin() *Admin { return p.admin }

// Vhost returns the run's virtual host.
func (p *Provisioned) Vhost() string { return p.driver.Vhost() }

// NotAudited says what cannot be proved with the rights at hand, one sentence each; none with management.
func (p *Provisioned) NotAudited() []string {
	if p.options.Management != ManagementNone {
		return nil
	}
	return []string{
		"the effective settings of the queues were not compared with the intended ones: that needs the management API",
		"messages that the broker holds for a dead-letter target which refuses them cannot be seen without the management API",
		"unacked messages of other consumers cannot be seen without the management API",
	}
}

// Close ends the admin's connection and leaves the topology.
func (p *Provisioned) Close() {
	if p.admin != nil {
		p.admin.Close()
	}
}

// Remove deletes what Provision made, and only that: the virtual host, or the queues, exchanges and policies that did not
// exist before. It goes on after an error and joins what went wrong.
func (p *Provisioned) Remove(ctx context.Context) error {
	defer p.Close()
	if p.vhost {
		return p.options.Client.DeleteVhost(ctx, p.driver.Vhost())
	}
	var problems []error
	if p.admin != nil {
		problems = append(problems, p.admin.Delete(ctx, &p.made))
	}
	for _, policy := range p.made.Policies {
		problems = append(problems, p.options.Client.DeletePolicy(ctx, p.driver.Vhost(), policy.Name))
	}
	return errors.Join(problems...)
}
