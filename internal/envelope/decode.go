package envelope

import (
	"encoding/json"
	"fmt"
)

// Decode reads and checks a body. Its errors wrap ErrBadJSON, ErrMissingField or ErrUnknownSchema; the schema version is
// judged before the fields, since a later version may have others. With an error the order is what could be read, for
// the failure's metadata; zero for ErrBadJSON.
func Decode(body []byte) (Order, error) {
	o, ok := scan(body)
	if !ok {
		o = Order{}
		if err := json.Unmarshal(body, &o); err != nil {
			return Order{}, fmt.Errorf("%w: %w", ErrBadJSON, err)
		}
	}
	if o.SchemaVersion == 0 {
		return o, fmt.Errorf("%w: schema_version", ErrMissingField)
	}
	if o.SchemaVersion != SchemaVersion {
		return o, fmt.Errorf("%w: %d, this build reads %d", ErrUnknownSchema, o.SchemaVersion, SchemaVersion)
	}
	if field := o.missing(); field != "" {
		return o, fmt.Errorf("%w: %s", ErrMissingField, field)
	}
	return o, nil
}

func (o *Order) missing() string {
	switch {
	case o.ID == "":
		return "id"
	case o.Type == "":
		return "type"
	case o.OccurredAt.IsZero():
		return "occurred_at"
	case o.Aggregate.ID == "":
		return "aggregate.id"
	case o.Data.SKU == "":
		return "data.sku"
	case o.Data.Count <= 0:
		return "data.count"
	default:
		return ""
	}
}
