package inbox

import "context"

type commitKey struct{}

// BeforeCommit returns a context in which the transaction strategy calls do when everything but the COMMIT of a claim is done.
// The other strategies have no such moment: claim, effect and COMMIT travel together. A nil do changes nothing.
func BeforeCommit(ctx context.Context, do func()) context.Context {
	if do == nil {
		return ctx
	}
	return context.WithValue(ctx, commitKey{}, do)
}

func aboutToCommit(ctx context.Context) {
	if do, ok := ctx.Value(commitKey{}).(func()); ok {
		do()
	}
}
