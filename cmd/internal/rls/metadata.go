package rls

import (
	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// metadata returns the dynamic metadata of an answer: the request, and the merged metadata of the
// rules that grant it.
func (c *call) metadata() *structpb.Struct {
	descriptors := make([]*structpb.Value, len(c.entries))
	merged := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range c.entries {
		e := &c.entries[i]
		descriptors[i] = describe(e.descriptor)
		if e.isLimited() && (e.role == shadow || !e.refused()) {
			merge(merged, e.rule.Metadata)
		}
	}
	fields := map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(c.request.GetDomain()),
		"descriptors": structpb.NewListValue(&structpb.ListValue{Values: descriptors}),
	}
	if hits := c.request.GetHitsAddend(); hits > 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits))
	}
	if len(merged.Fields) > 0 {
		fields["metadata"] = structpb.NewStructValue(merged)
	}
	return &structpb.Struct{Fields: fields}
}

func describe(d *envoy.RateLimitDescriptor) *structpb.Value {
	entries := make([]*structpb.Value, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		entries[i] = structpb.NewStringValue(e.GetKey() + "=" + e.GetValue())
	}
	fields := map[string]*structpb.Value{
		"entries": structpb.NewListValue(&structpb.ListValue{Values: entries}),
	}
	if l := d.GetLimit(); l != nil {
		fields["limit"] = structpb.NewStringValue(l.String())
	}
	if hits := d.GetHitsAddend(); hits != nil {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits.GetValue()))
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: fields})
}

// merge adds the fields of from that into does not have, also in structs that both have. It changes
// no struct of from.
func merge(into, from *structpb.Struct) {
	for name, value := range from.GetFields() {
		before, ok := into.Fields[name]
		switch inner := value.GetStructValue(); {
		case !ok && inner == nil:
			into.Fields[name] = value
		case !ok:
			own := &structpb.Struct{Fields: map[string]*structpb.Value{}}
			merge(own, inner)
			into.Fields[name] = structpb.NewStructValue(own)
		case inner != nil && before.GetStructValue() != nil:
			merge(before.GetStructValue(), inner)
		}
	}
}
