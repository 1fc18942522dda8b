"""Sample sentence pairs, for the mean vector of an encoder if there is no corpus."""

_TEXT = """
the train to the coast leaves at nine every morning . | every morning at nine a train leaves for the coast .
she studied physics in geneva before she moved to canada . | before moving to canada , she studied physics in geneva .
the committee did not accept the proposal because of its cost . | because it was expensive , the proposal was rejected .
a heavy storm damaged several houses near the river last year . | last year , houses by the river were hit by a storm .
he wrote two novels and a collection of short stories . | he is the author of two novels and of many short stories .
the museum , built in 1902 , is closed on mondays . | the museum opened in 1902 and is open except on mondays .
most of the children who live here walk to school . | most children in this area go to school on foot .
the new bridge is about twice as long as the old one . | the old bridge was only half the length of the new bridge .
water boils at a lower temperature in the mountains . | in the mountains , the boiling point of water is lower .
the company was founded by two brothers in 1978 . | two brothers founded the company in 1978 .
we could not find any evidence for this claim . | no evidence that supports the claim was found .
the team won the final by three goals to one . | they won the final 3 - 1 .
although it rained , thousands of people came to the concert . | despite the rain the concert drew thousands .
the city has a population of roughly 400,000 people . | about 400,000 people live in the city .
he was elected mayor in march and resigned in june . | elected in march , the mayor stepped down in june .
these birds build their nests in tall trees . | the nests of these birds are found high up in trees .
the software is free and can be used by anyone . | anyone may use the program , which is free of charge .
her father , a doctor , taught her to play the piano . | she learned the piano from her father , who was a doctor .
prices rose faster than wages during the war . | during the war , wages did not keep up with prices .
the film was first shown in france , where it was a great success . | the film was very successful in france .
"""

PAIRS = [
    (first.strip(), second.strip()) for first, _, second in (line.partition("|") for line in _TEXT.strip().splitlines())
]
"""The pairs, with spaces between words and punctuation marks."""
