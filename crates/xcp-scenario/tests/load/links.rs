//! Links: what holds for both directions and what for one, and by which links a flow goes.

use xcp_model::{Discipline, Limit, LossPlace, Queue};

use crate::{one, small};

#[test]
fn both_directions_unless_reverse() {
    let s = one(&small(
        "queue = { kind = \"xcp\", limit = \"1bdp\" }\nloss = 0.01\nblackout = \
            { from = \"1s\", to = \"2s\" }\nreverse = \
            { rate = \"1mbit\", delay = \"30ms\", loss = 0 }",
        "",
        "",
    ));
    let [there, back] = &s.links[0].directions;
    assert_eq!(
        (there.rate_bps, there.delay, back.rate_bps, back.delay),
        (10_000_000, 10_000_000, 1_000_000, 30_000_000)
    );
    // 40 ms there and back, at each direction's own rate.
    assert!(matches!(
        there.queue,
        Queue { limit: Limit::Bytes(50_000), discipline: Discipline::Xcp(_), .. }
    ));
    assert!(matches!(
        back.queue,
        Queue { limit: Limit::Bytes(5_000), discipline: Discipline::Xcp(_), .. }
    ));
    assert_eq!(
        (there.losses.len(), there.losses[0].probability, there.losses[0].place),
        (1, 0.01, LossPlace::AfterQueue)
    );
    assert_eq!(back.losses[0].probability, 0.0);
    assert_eq!((there.blackouts.len(), back.blackouts.len()), (1, 1));
    assert!(matches!(
        one(&small("reverse = { queue = \"drop-tail\" }\nqueue = \"xcp\"", "", "")).links[0]
            .directions[1]
            .queue,
        Queue { discipline: Discipline::DropTail, .. }
    ));
    let s = one(&small(
        "loss = [{ probability = 0.1, direction = \"reverse\", place = \"before-queue\", to = \"5s\" }, { probability = 0.2, direction = \"forward\" }]",
        "",
        "",
    ));
    let [there, back] = &s.links[0].directions;
    assert_eq!((there.losses[0].probability, there.losses[0].period.to), (0.2, s.duration));
    assert_eq!(
        (back.losses[0].place, back.losses[0].period.to),
        (LossPlace::BeforeQueue, 5_000_000_000)
    );
}

#[test]
fn via_forces_a_way() {
    let detour = "[[link]]\nbetween = [\"S\", \"R\"]\nrate = \"1mbit\"\ndelay \
        = \"1s\"\n[[link]]\nbetween = [\"R\", \"D\"]\nrate = \"1mbit\"\ndelay = \"1s\"";
    let s = one(&small("", "", detour));
    assert_eq!(
        (s.flows[0].group.route.as_slice(), s.flows[0].group.return_route.as_slice()),
        (&[0][..], &[1][..])
    );
    let s = one(&small("", "via = [\"R\"]", detour));
    assert_eq!(
        (s.flows[0].group.route.as_slice(), s.flows[0].group.return_route.as_slice()),
        (&[2, 4][..], &[5, 3][..])
    );
}
